import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Server, utils, type Connection, type Session } from 'ssh2';

/** What the stand-in for `rke` is to do: see stand-in.cjs. */
interface RkeControl {
  readonly fail?: 'before-state' | 'after-state' | 'after-nodes' | 'disk-full' | 'hang';
  /** With `after-nodes`: how many machines it sets up first. */
  readonly nodes?: number;
  /** Fail each time, not just once. */
  readonly always?: boolean;
  readonly unreachable?: readonly string[];
  /** Program that makes a control plane: its argument is an address, its output a kubeconfig. */
  readonly hook?: string;
  readonly version?: string;
}

/** One start of the stand-in. */
interface RkeCall {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** The stand-in for `rke`, installed in a folder. */
export interface FakeRkeBinary {
  /** Folder for the PATH. */
  readonly bin: string;
  readonly folder: string;
  control(control: RkeControl): void;
  calls(): readonly RkeCall[];
  /** Addresses of the machines that are set up. */
  machines(): readonly string[];
}

/** Makes a folder with an executable `rke` in it. */
export function installFakeRke(folder: string): FakeRkeBinary {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const script = join(__dirname, 'stand-in.cjs');
  writeFileSync(join(bin, 'rke'), `#!/bin/sh\nexec '${process.execPath}' '${script}' '${folder}' "$@"\n`);
  chmodSync(join(bin, 'rke'), 0o755);
  const calls = join(folder, 'calls.jsonl');
  return {
    bin,
    folder,
    control: (control) => writeFileSync(join(folder, 'control.json'), JSON.stringify(control)),
    calls: () =>
      existsSync(calls)
        ? readFileSync(calls, 'utf8')
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as RkeCall)
        : [],
    machines: () => (existsSync(join(folder, 'machines')) ? readdirSync(join(folder, 'machines')).sort() : []),
  };
}

/** An SSH server in this process, whose users have a home and a `docker` that lists containers. */
export interface FakeSshServer {
  readonly address: string;
  readonly port: number;
  readonly hostKey: string;
  /** Of the host key, in PEM. */
  readonly privateKey: string;
  readonly home: string;
  /** What `docker ps` says from now on. */
  setContainers(containers: readonly string[]): void;
  close(): Promise<void>;
}

/** An SSH server as it was before: the port that it listens on, and its key in PEM unless it gets a new one. */
interface FormerSshServer {
  readonly port: number;
  readonly privateKey?: string;
}

/**
 * @param publicKey - the only key that is let in, in OpenSSH's format
 * @param former - @default a free port and a new key
 */
export async function startFakeSshServer(
  folder: string,
  address: string,
  publicKey: string,
  { port = 0, privateKey: key = newKey() }: Partial<FormerSshServer> = {},
): Promise<FakeSshServer> {
  const home = join(folder, 'home');
  const bin = join(folder, 'bin');
  mkdirSync(home, { recursive: true });
  mkdirSync(bin, { recursive: true });
  const runs = (containers: readonly string[]): void => {
    writeFileSync(join(bin, 'docker'), `#!/bin/sh\nprintf '%s\\n' ${containers.join(' ')}\n`);
    chmodSync(join(bin, 'docker'), 0o755);
  };
  runs([]);
  const open = new Set<Connection>();
  const server = new Server({ hostKeys: [key] }, (connection) => {
    open.add(connection);
    connection.on('close', () => open.delete(connection));
    connection.on('error', () => open.delete(connection)); // a client that goes away is none of the test's
    connection.on('authentication', (context) => {
      const allowed = utils.parseKey(publicKey);
      const fits =
        context.method === 'publickey' &&
        !(allowed instanceof Error) &&
        context.key.data.equals(allowed.getPublicSSH()) &&
        (context.signature === undefined ||
          context.blob === undefined ||
          allowed.verify(context.blob, context.signature, context.hashAlgo));
      if (fits) context.accept();
      else context.reject(['publickey']);
    });
    connection.on('session', (accept) => serve(accept(), home, bin));
  });
  await new Promise<void>((resolve) => server.listen(port, address, () => resolve()));
  const parsed = utils.parseKey(key);
  if (parsed instanceof Error) throw parsed;
  return {
    address,
    port: (server.address() as AddressInfo).port,
    hostKey: `${parsed.type} ${parsed.getPublicSSH().toString('base64')}`,
    privateKey: key,
    home,
    setContainers: runs,
    close: () =>
      new Promise((resolve) => {
        open.forEach((connection) => connection.end());
        server.close(() => resolve());
      }),
  };
}

const newKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString();

function serve(session: Session, home: string, bin: string): void {
  session.on('exec', (accept, _, { command }) => {
    const channel = accept();
    const env = { HOME: home, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    const child = spawn('sh', ['-c', command], { cwd: home, env });
    channel.pipe(child.stdin);
    child.stdin.on('error', () => undefined); // it has ended without reading all of it
    child.stdout.pipe(channel, { end: false });
    child.stderr.pipe(channel.stderr, { end: false });
    child.on('close', (code) => {
      channel.exit(code ?? 255);
      channel.end();
    });
  });
}
