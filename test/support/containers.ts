import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a container printed, and its exit code. */
interface ContainerResult {
  readonly code: number | null;
  readonly output: string;
}

/** A containerd of its own, with its data in one folder. */
export interface Containerd {
  /** Imports an archive with `ctr images import`. @returns the names of all images */
  import(archive: string): readonly string[];
  /**
   * Runs a container in the network of this machine, with a root file system that cannot be written to.
   *
   * @param args the command line; none: what the image starts
   * @param mounts files or folders of this machine, by their path in the container
   */
  run(image: string, args?: readonly string[], mounts?: Readonly<Record<string, string>>): Promise<ContainerResult>;
  end(): Promise<void>;
}

/** Why containers cannot run here; undefined: they can. */
export function containersUnavailable(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'skipped: containers need Linux, and root';
  const missing = ['containerd', 'ctr', 'runc'].filter((name) => spawnSync('which', [name]).status !== 0);
  return missing.length === 0
    ? undefined
    : `skipped: ${missing.join(', ')} missing (Debian has packages containerd and runc)`;
}

/** @param folder a short path: sockets are in it */
export async function startContainerd(folder: string): Promise<Containerd> {
  mkdirSync(folder, { recursive: true });
  const [config, address, log] = ['config.toml', 'containerd.sock', 'log'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(
    config,
    `version = 2\nroot = "${folder}/root"\nstate = "${folder}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n` +
      `[grpc]\n  address = "${address}"\n`,
  );
  const daemon = spawn('containerd', ['-c', config], { stdio: ['ignore', 'ignore', openSync(log, 'w')] });
  const deadline = Date.now() + 30_000;
  while (!existsSync(address)) {
    if (Date.now() > deadline || daemon.exitCode !== null) throw new Error(`containerd does not start: see ${log}`);
    await new Promise((done) => setTimeout(done, 50));
  }
  const connection = ['-a', address, '-n', 'kindred-test'];
  let count = 0;
  return {
    import(archive) {
      // The snapshotter that needs no support of the file system.
      execFileSync('ctr', [...connection, 'images', 'import', '--snapshotter', 'native', archive], { stdio: 'ignore' });
      return execFileSync('ctr', [...connection, 'images', 'ls', '-q'], { encoding: 'utf8' })
        .trim()
        .split('\n');
    },
    async run(image, args = [], mounts = {}) {
      count += 1;
      const mountArgs = Object.entries(mounts).flatMap(([to, from]) => [
        '--mount',
        `type=bind,src=${from},dst=${to},options=rbind:ro`,
      ]);
      // Not --net-host, which mounts this machine's own resolv.conf.
      const network = `network:/proc/${process.pid}/ns/net`;
      const options = ['run', '--rm', '--snapshotter', 'native', '--with-ns', network, '--read-only', ...mountArgs];
      // Not synchronously: the servers that it asks are in this process.
      const child = spawn('ctr', [...connection, ...options, image, `c${count}`, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, output };
    },
    async end() {
      const ended = once(daemon, 'exit');
      daemon.kill();
      await ended;
    },
  };
}
