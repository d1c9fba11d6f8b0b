import { utils } from 'ssh2';

/** A pair of SSH keys. */
export interface SshKeys {
  /** In OpenSSH's own format. */
  readonly privateKey: string;
  /** As `type base64`. */
  readonly publicKey: string;
}

/** Length of an Ed25519 public key as RFC 8709 writes it: its type and its 32 bytes, each after a length of four bytes. */
const wholeKey = 4 + 'ssh-ed25519'.length + 4 + 32;

/**
 * Makes a new pair of Ed25519 keys.
 *
 * @param passphrase - what the private key is locked with; it is not locked without
 *
 * ssh2 1.17 leaves out the zero bytes at the start of a public key, and no SSH server takes such a key: one of 256. That one is drawn again.
 */
export function newSshKeys(passphrase?: string): SshKeys {
  const lock = passphrase === undefined ? undefined : { passphrase, cipher: 'aes256-ctr', rounds: 8 };
  for (;;) {
    const pair = utils.generateKeyPairSync('ed25519', lock);
    const [type = '', key = ''] = pair.public.split(' ');
    if (Buffer.from(key, 'base64').length === wholeKey)
      return { privateKey: pair.private, publicKey: `${type} ${key}` };
  }
}
