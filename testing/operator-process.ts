import { execFile, type ChildProcess } from 'node:child_process';
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { unrefGuarded, spawnGuarded } from '../local/guarded-process';
import { LogLines, type LogLine } from './log-lines';
import { Metrics } from './metrics';

/** A program that is bundled into one file. */
export type Program = 'operator' | 'provisioner';

/** How to run an operator. */
export interface OperatorProcessOptions {
  /** Which of Kindred's own bundles. @default 'operator' */
  readonly program?: Program;
  /** The path of another program, instead. @default none */
  readonly file?: string;
  /** The path of the kubeconfig that the operator uses. */
  readonly kubeconfig: string;
  /** Its command line as in its Deployment, to which the harness adds its own flags. @default none */
  readonly args?: readonly string[];
  /** All of its environment variables. @default none */
  readonly env?: Readonly<Record<string, string>>;
}

/** How an operator ended. */
export interface OperatorExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A response of the operator's health server. */
export interface HealthResponse {
  readonly status: number;
  readonly text: string;
}

/**
 * The operator's bundle as a process of its own.
 *
 * Guarantees: it listens only on a free port of the loopback interface; it ends when this process ends,
 * however that happens, and does not keep this process alive. Signals, the pid and measurements concern the
 * operator itself: the guard that watches over it is another process.
 */
export class OperatorProcess {
  readonly log = new LogLines();
  /** Resolves when it has ended, for whatever reason. */
  readonly exited: Promise<OperatorExit>;

  private constructor(private readonly child: ChildProcess) {
    this.exited = new Promise((resolve) => {
      // A process that cannot be started has ended too.
      child.once('error', (error) => this.log.end(`the operator cannot be started: ${error.message}`));
      child.once('close', (code, signal) => {
        this.log.end(`the operator has ended (code ${String(code)}, signal ${String(signal)})`);
        resolve({ code, signal });
      });
    });
    const take = (chunk: string): void => this.log.push(chunk);
    child.stdout?.setEncoding('utf8').on('data', take);
    child.stderr?.setEncoding('utf8').on('data', take);
  }

  /**
   * Starts the operator; resolves when its health server listens, which is before it leads.
   *
   * @throws Error when it never does; no process is left then
   */
  static async start(options: OperatorProcessOptions): Promise<OperatorProcess> {
    const bundle = options.file ?? (await operatorBundle(options.program));
    const own = [`--kubeconfig=${options.kubeconfig}`, '--metrics-port=0', '--metrics-host=127.0.0.1'];
    const args = ['--enable-source-maps', bundle, ...(options.args ?? []), ...own];
    const child = spawnGuarded(process.execPath, args, { env: { ...options.env }, output: 'pipe' });
    unrefGuarded(child);
    const operator = new OperatorProcess(child);
    try {
      await operator.log.line('serving /healthz, /readyz and /metrics');
    } catch (error) {
      await operator.kill();
      throw error;
    }
    return operator;
  }

  /** Resolves when it leads and its controllers run. */
  async waitUntilReconciling(timeoutMs?: number): Promise<LogLine> {
    return this.log.line('reconciling', timeoutMs);
  }

  /** Whether its process runs. */
  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Stops it with SIGTERM, as the kubelet does, and waits until it has ended. */
  async stop(): Promise<OperatorExit> {
    this.child.kill('SIGTERM');
    return this.exited;
  }

  /** Kills it, as a crash of its node does: it does not release the Lease. */
  async kill(): Promise<OperatorExit> {
    this.child.kill('SIGKILL');
    return this.exited;
  }

  /** Freezes it, as on a node without free resources; responses to running requests are not read. */
  pause(): void {
    this.child.kill('SIGSTOP');
  }

  /** Continues it after `pause`. */
  resume(): void {
    this.child.kill('SIGCONT');
  }

  /** The pid of the operator. */
  get pid(): number {
    if (this.child.pid === undefined) throw new Error('the operator has no process');
    return this.child.pid;
  }

  /** The current `/metrics`. */
  async metrics(): Promise<Metrics> {
    const { text } = await this.fetchEndpoint('/metrics');
    return Metrics.parse(text);
  }

  /** The current `/readyz`. */
  async readyz(): Promise<HealthResponse> {
    return this.fetchEndpoint('/readyz?verbose');
  }

  /** The current `/healthz`. */
  async healthz(): Promise<HealthResponse> {
    return this.fetchEndpoint('/healthz');
  }

  private async fetchEndpoint(path: string): Promise<HealthResponse> {
    const { port } = await this.log.line('serving /healthz, /readyz and /metrics');
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    return { status: response.status, text: await response.text() };
  }
}

/**
 * Builds the operator as it is shipped, one bundled file, when it is missing or older than its sources. Of
 * several processes that call this, one builds and the others wait.
 *
 * @returns its path
 * @throws Error with esbuild's message when the build fails
 */
export async function operatorBundle(program: Program = 'operator'): Promise<string> {
  await acquire();
  const bundle = bundleOf(program);
  try {
    if (await isStale(bundle)) await promisify(execFile)(process.execPath, [tsx, 'scripts/build.ts'], { cwd: root });
    return bundle;
  } finally {
    await rm(lock, { force: true });
  }
}

const root = join(__dirname, '..');
const tsx = join(root, 'node_modules/tsx/dist/cli.mjs');
const bundleOf = (program: Program): string => join(root, 'dist', `${program}.cjs`);
const lock = join(root, 'dist', 'operator.lock');
const lockTimeoutMs = 120_000;

/** The sources of the bundles; `node_modules` changes only with the lock file. */
const sources = [
  'operator',
  'provisioner',
  'constructs',
  'provision',
  'scripts/build.ts',
  'cli/bundle',
  'package-lock.json',
];

async function isStale(bundle: string): Promise<boolean> {
  const built = await modified(bundle);
  const times = await Promise.all(sources.map((source) => newest(join(root, source))));
  return built === undefined || Math.max(...times) >= built;
}

async function newest(path: string): Promise<number> {
  const found = await stat(path);
  if (!found.isDirectory()) return found.mtimeMs;
  const entries = await readdir(path);
  const inside = entries.filter((name) => name !== 'node_modules').map((name) => newest(join(path, name)));
  // The time of the directory itself changes when a file is removed.
  return Math.max(found.mtimeMs, ...(await Promise.all(inside)));
}

async function modified(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
}

async function acquire(): Promise<void> {
  await mkdir(join(root, 'dist'), { recursive: true });
  const deadline = Date.now() + lockTimeoutMs;
  while (!(await tryLock())) {
    if (await ownerIsDead()) await rm(lock, { force: true });
    else if (Date.now() > deadline) throw new Error(`${lock} is held by a process that builds; remove it if none does`);
    else await delay(50);
  }
}

async function tryLock(): Promise<boolean> {
  return writeFile(lock, String(process.pid), { flag: 'wx' }).then(
    () => true,
    () => false,
  );
}

async function ownerIsDead(): Promise<boolean> {
  const pid = Number(await readFile(lock, 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid === 0) return false; // about to be written, or released just now
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
