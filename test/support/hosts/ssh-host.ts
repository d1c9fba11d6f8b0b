import { utils } from 'ssh2';
import type { Machine } from '../../../provision/task/task';

/** A machine with an SSH server, for a test: what every kind of host can do. */
export interface SshHost {
  readonly name: string;
  /** Where its SSH server listens. */
  readonly address: string;
  readonly port: number;
  /** Its public host key now: type, space, base64. */
  readonly hostKey: string;
  /** The private key that its users take, in OpenSSH's format. */
  readonly privateKey: string;
  /** How a plan names it. @param user - @default 'root' */
  machine(user?: string): Required<Pick<Machine, 'address' | 'port' | 'user' | 'hostKey' | 'sshKey'>>;
  /** New connections are refused from now on; those that stand go on. */
  stopSshd(): Promise<void>;
  startSshd(): Promise<void>;
  /** Cuts every SSH connection at once, the way a crash of the server does. What runs goes on. */
  dropConnections(): Promise<void>;
  /** Gives it another host key, as a machine that was installed anew has. */
  changeHostKey(): Promise<void>;
  /** Takes no key any more. */
  refuseKey(): Promise<void>;
  /** Takes its key again. */
  acceptKey(): Promise<void>;
}

/** A machine with a file system, processes and a network of its own, whose root a script is. */
export interface TestHost extends SshHost {
  /** Pid of its first process, as this process sees it. */
  readonly pid: number;
  /** Runs a shell script there as root, past SSH. @throws when it fails */
  exec(script: string, input?: string): Promise<string>;
  /** Swallows every packet from and to it. */
  cutNetwork(): Promise<void>;
  /** Ends `cutNetwork` and `slowNetwork`. */
  restoreNetwork(): Promise<void>;
  /** Limits what reaches it. @param kilobits - a second */
  slowNetwork(kilobits: number): Promise<void>;
  /** Leaves no byte of its disk free. */
  fillDisk(): Promise<void>;
  freeDisk(): Promise<void>;
  /** Ends the machine, as when its power fails. */
  end(): Promise<void>;
}

/** The secret that a host's private key is, in a plan. */
export function keyRefOf(host: Pick<SshHost, 'name'>): { namespace: string; name: string; key: string } {
  return { namespace: 'machines', name: host.name, key: 'ssh-privatekey' };
}

/** A pair of SSH keys. */
interface SshKeys {
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
