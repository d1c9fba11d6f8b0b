import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/** The networks of one group of hosts: `10.203.<number>.0/25` in reach of this process, `10.203.<number>.128/25` behind it. */
export interface HostNetwork {
  readonly number: number;
  /** The address of this process' side. */
  readonly gateway: string;
  /** Gives a host an interface. @param pid - the host's first process */
  connect(pid: number, link: Link): Promise<void>;
  /** Ends the networks and everything that hangs on them. */
  end(): Promise<void>;
  /** Runs a shell script in the namespace of the bridges. */
  exec(script: string): Promise<string>;
}

/** One interface of a host. */
export interface Link {
  /** Its name in the host. */
  readonly name: string;
  /** Its name at the bridge; unique in the lab. */
  readonly port: string;
  readonly network: 'outer' | 'inner';
  readonly address: string;
}

const greet = `set -e
read -r pid _ </proc/self/stat
ip link set lo up
for bridge in outer inner; do ip link add "$bridge" type bridge forward_delay 0; ip link set "$bridge" up; done
echo "$pid"
exec >/dev/null 2>&1
read -r _ <&3 || true`;

/** How many groups of hosts a machine can have at once. */
const labs = 250;

/** Makes the networks. They end with this process, however it ends. */
export async function startHostNetwork(): Promise<HostNetwork> {
  const guarded = await startNamespaceProcess(['--net', '--mount'], ['bash', '-c', greet]);
  try {
    const number = await claimNumber(guarded);
    return new NamespacedNetwork(guarded, number);
  } catch (error) {
    await guarded.end();
    throw error;
  }
}

/**
 * Takes a range of addresses. The name of the interface on our side is the lock: only one process gets to make it, and the kernel removes
 * it together with the other end, which lies in the lab.
 */
async function claimNumber({ pid }: NamespaceProcess): Promise<number> {
  for (let tried = 0; tried < labs; tried++) {
    const number = ((process.pid + tried) % labs) + 1;
    const link = `kindred${number}`;
    const made = await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', String(pid)]);
    if (made.exitCode !== 0 && made.stderr.includes('File exists')) continue;
    await requireSuccess(Promise.resolve(made));
    await requireSuccess(run('ip', ['address', 'add', `10.203.${number}.1/25`, 'dev', link]));
    await requireSuccess(run('ip', ['link', 'set', link, 'up']));
    await requireSuccess(
      run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', 'link', 'set', 'uplink', 'master', 'outer', 'up']),
    );
    return number;
  }
  throw new Error(`all ${labs} ranges of addresses for test hosts are taken`);
}

class NamespacedNetwork implements HostNetwork {
  constructor(
    private readonly guarded: NamespaceProcess,
    readonly number: number,
  ) {}

  get gateway(): string {
    return `10.203.${this.number}.1`;
  }

  async connect(pid: number, { name, port, network, address }: Link): Promise<void> {
    await this.exec(`ip link add ${port} type veth peer name ${name} netns ${pid}
ip link set ${port} master ${network} up
exec nsenter --net=/proc/${pid}/ns/net sh -ec 'ip address add ${address}/25 dev ${name}; ip link set ${name} up'`);
  }

  async exec(script: string): Promise<string> {
    return requireSuccess(run('nsenter', [`--net=/proc/${this.guarded.pid}/ns/net`, 'sh', '-ec', script]));
  }

  async end(): Promise<void> {
    await this.guarded.end();
  }
}

/** A process at the root of namespaces of its own. */
export interface NamespaceProcess {
  /** Its pid as this process sees it; the namespaces are reached through it. */
  readonly pid: number;
  /** Ends it, and with it everything in its namespaces. */
  end(): Promise<void>;
}

/**
 * Starts a script as the first process of new namespaces. It inherits a pipe as descriptor 3 that closes when this process ends, SIGKILL
 * included, and is to end then; the kernel ends everything else in its process namespace with it.
 *
 * @param namespaces - options of `unshare`, besides `--pid --fork --kill-child`
 * @param command - what prints its pid as its first line once it is ready
 */
export async function startNamespaceProcess(
  namespaces: readonly string[],
  command: readonly string[],
): Promise<NamespaceProcess> {
  const child = spawn('unshare', [...namespaces, '--pid', '--fork', '--kill-child', '--', ...command], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // Ctrl-C in a terminal is for the test, which then ends its hosts.
    detached: true,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const pid = Number(await firstLine(child));
  // A test that forgets its hosts, or fails before it has them all, still comes to its end, and they with it.
  child.unref();
  for (const stream of child.stdio) (stream as Socket | null)?.unref();
  return {
    pid,
    end: async () => {
      child.ref();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  const { stdout, stderr } = child as ChildProcess & { stdout: Readable; stderr: Readable };
  return new Promise((resolve, reject) => {
    let out = '';
    let errors = '';
    stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const end = out.indexOf('\n');
      if (end >= 0) resolve(out.slice(0, end));
    });
    child.once('error', reject);
    child.once('close', (code) =>
      reject(new Error(`a test host did not start (exit code ${String(code)}): ${errors}`)),
    );
  });
}

/** How a command ended, and what it printed. */
interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. @param input - text for its stdin */
export function run(command: string, args: readonly string[], input = ''): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    child.stdin.on('error', () => undefined); // it did not read all of it; its exit code tells
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Runs a shell script on this machine. @throws when it fails, with what it printed */
export async function requireSuccess(ran: Promise<CommandResult>): Promise<string> {
  const { exitCode, stdout, stderr } = await ran;
  if (exitCode === 0) return stdout;
  throw new Error(`a command of the test hosts failed with ${String(exitCode)}: ${stderr}${stdout}`);
}
