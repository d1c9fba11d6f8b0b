import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { type Plain, type Value, type Values, Secret, Unknown, isMap, plain, textOf } from './values';

const sealedKey = 'secret';
const markKey = '@sealed';

/** Encrypts secrets on their way into the state's text, and back: AES-256-GCM, the key from a passphrase. */
export class Sealer {
  private readonly key: Buffer;

  constructor(passphrase: string) {
    this.key = createHash('sha256').update(passphrase).digest();
  }

  /** The value as JSON, each secret as `{"@sealed": true, "secret": "<base64>"}`. */
  seal(value: Value): Plain {
    if (value instanceof Secret) return { [markKey]: true, [sealedKey]: this.encrypt(JSON.stringify(plain(value))) };
    if (value instanceof Unknown) throw new Error('an unknown value has no place in a state');
    if (Array.isArray(value)) return value.map((item) => this.seal(item));
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.seal(item)]));
  }

  /**
   * Reads back what {@link seal} wrote.
   *
   * @throws Error when the passphrase is another one
   */
  open(sealed: Plain): Value {
    if (Array.isArray(sealed)) return sealed.map((item) => this.open(item));
    if (typeof sealed !== 'object' || sealed === null) return sealed;
    if (sealed[markKey] === true)
      return new Secret(
        JSON.parse(this.decrypt(textOf(sealed[sealedKey], `"${sealedKey}" of a sealed value`))) as Plain,
      );
    return this.openAll(sealed);
  }

  openAll(sealed: { [key: string]: Plain }): Values {
    return Object.fromEntries(Object.entries(sealed).map(([key, item]) => [key, this.open(item)]));
  }

  private encrypt(text: string): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce);
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
  }

  private decrypt(text: string): string {
    const bytes = Buffer.from(text, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', this.key, bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
  }
}
