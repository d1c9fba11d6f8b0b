import { createPrivateKey } from 'node:crypto';
import { MachineError } from './transport';

const OPENSSH = /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=\n]+)-----END OPENSSH PRIVATE KEY-----\n?$/;
/** Source: PROTOCOL.key of OpenSSH: the magic, then the cipher's name with its length. */
const MAGIC = Buffer.from('openssh-key-v1\0');

/**
 * A private key as the ssh client reads it: lines end with LF, the last one too.
 *
 * @param whose - for the message: `the key of 10.0.0.1`
 * @throws MachineError `InvalidKey` when it is none, or asks for a passphrase; the message holds nothing of it
 */
export function usablePrivateKey(text: string, whose: string): string {
  const key = `${text.replaceAll('\r\n', '\n').trim()}\n`;
  const [, body] = OPENSSH.exec(key) ?? [];
  const problem = body === undefined ? pemProblem(key) : openSshProblem(Buffer.from(body, 'base64'));
  if (problem === undefined) return key;
  throw new MachineError('InvalidKey', `${whose} cannot be used: ${problem}`);
}

const passphrase =
  'it asks for a passphrase, and nobody is there to give it. Make a key without one for this purpose alone (ssh-keygen -t ed25519 -N "")';
const malformed =
  'it is not a private key. Put the whole file in, with its BEGIN and END lines, not the .pub file and not base64 of it';

function openSshProblem(body: Buffer): string | undefined {
  if (body.length < MAGIC.length + 8 || !body.subarray(0, MAGIC.length).equals(MAGIC)) return malformed;
  const length = body.readUInt32BE(MAGIC.length);
  const start = MAGIC.length + 4;
  const cipher = body.subarray(start, start + length).toString('latin1');
  return cipher === 'none' ? undefined : passphrase;
}

function pemProblem(key: string): string | undefined {
  if (!key.startsWith('-----BEGIN ')) return malformed;
  // PKCS#8 says so in its first line, the older formats in the second. Sources: RFC 5958, RFC 1421.
  if (/^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED$/m.test(key)) return passphrase;
  try {
    createPrivateKey({ key, format: 'pem' });
    return undefined;
  } catch {
    return malformed; // what the parser says may quote the key
  }
}
