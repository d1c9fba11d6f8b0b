import { execFile, type ChildProcess } from 'node:child_process';
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { unrefGuarded, spawnGuarded } from '../local/guarded-process';
import { Metrics } from './metrics';

/** What is bundled: the provisioner is an operator of its own. */
export type Program = 'operator' | 'provisioner';

/** How to run an operator. */
export interface OperatorProcessOptions {
  /** Which of the bundles. @default 'operator' */
  readonly program?: Program;
  /** The path of a kubeconfig: whose requests its requests are. */
  readonly kubeconfig: string;
  /** Its command line besides what the harness adds: as in its Deployment. @default none */
  readonly args?: readonly string[];
  /** Its whole environment. @default empty */
  readonly env?: Readonly<Record<string, string>>;
}

/** How an operator ended. */
export interface OperatorExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** An answer of the operator's health server. */
export interface HealthResponse {
  readonly status: number;
  readonly text: string;
}

/**
 * The operator's bundle as a process of its own.
 *
 * Guarantees: it listens on a free port of the loopback only; it ends with this process, however that ends, and does not keep it from ending.
 * Signals, the pid and what is measured by it are the operator's own: the guard that watches over it is another process.
 */
export class OperatorProcess {
  readonly log = new LogLines();
  /** Resolves when it has ended, however. */
  readonly exited: Promise<OperatorExit>;

  private constructor(private readonly child: ChildProcess) {
    this.exited = new Promise((resolve) => {
      // What cannot be started ends too.
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
   * Starts one; resolves when its health server listens, which is before it leads.
   *
   * @throws Error when it never does; no process is left then
   */
  static async start(options: OperatorProcessOptions): Promise<OperatorProcess> {
    const bundle = await operatorBundle(options.program);
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

  /** Resolves when it leads and its controllers work. */
  async waitUntilReconciling(timeoutMs?: number): Promise<LogLine> {
    return this.log.line('reconciling', timeoutMs);
  }

  /** Whether its process runs. */
  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Asks it to stop, as the kubelet does, and waits until it has. */
  async stop(): Promise<OperatorExit> {
    this.child.kill('SIGTERM');
    return this.exited;
  }

  /** Ends it as a crash of its node does: no last word, the Lease stays held. */
  async kill(): Promise<OperatorExit> {
    this.child.kill('SIGKILL');
    return this.exited;
  }

  /** Freezes it, as a node does that is short of everything; requests under way are answered to nobody. */
  pause(): void {
    this.child.kill('SIGSTOP');
  }

  /** Lets it go on. */
  resume(): void {
    this.child.kill('SIGCONT');
  }

  /** Of its process. */
  get pid(): number {
    if (this.child.pid === undefined) throw new Error('the operator has no process');
    return this.child.pid;
  }

  /** What `/metrics` says now. */
  async metrics(): Promise<Metrics> {
    const { text } = await this.fetchEndpoint('/metrics');
    return Metrics.parse(text);
  }

  /** What `/readyz` says now. */
  async readyz(): Promise<HealthResponse> {
    return this.fetchEndpoint('/readyz?verbose');
  }

  /** What `/healthz` says now. */
  async healthz(): Promise<HealthResponse> {
    return this.fetchEndpoint('/healthz');
  }

  private async fetchEndpoint(path: string): Promise<HealthResponse> {
    const { port } = await this.log.line('serving /healthz, /readyz and /metrics');
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    return { status: response.status, text: await response.text() };
  }
}

const root = join(__dirname, '..');
const bundleOf = (program: Program): string => join(root, 'dist', `${program}.cjs`);
const lock = join(root, 'dist', 'operator.lock');
const lockTimeoutMs = 120_000;

/** What the bundles are made of; `node_modules` changes with the lock file only. */
const sources = [
  'operator',
  'provisioner',
  'constructs',
  'provision',
  'scripts/build.mjs',
  'scripts/bundle',
  'package-lock.json',
];

/**
 * The operator as it is shipped: one bundled file. Built when it is missing or older than its sources; of several processes that ask,
 * one builds and the others wait.
 *
 * @returns its path
 * @throws Error with esbuild's words when it cannot be built
 */
export async function operatorBundle(program: Program = 'operator'): Promise<string> {
  await acquire();
  const bundle = bundleOf(program);
  try {
    if (await isStale(bundle)) await promisify(execFile)(process.execPath, ['scripts/build.mjs'], { cwd: root });
    return bundle;
  } finally {
    await rm(lock, { force: true });
  }
}

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
  // The folder itself tells of files that were removed.
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

/** One line of the operator's JSON log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly time: string;
  readonly [field: string]: unknown;
}

interface Waiter {
  readonly wanted: (line: LogLine) => boolean;
  readonly resolve: (line: LogLine) => void;
  readonly reject: (error: Error) => void;
}

/** The JSON log of a process, taken apart as it is written, and waited for without polling. */
export class LogLines {
  /** Every line so far, oldest first. */
  readonly all: LogLine[] = [];
  private rest = '';
  private ended: string | undefined;
  private readonly waiters = new Set<Waiter>();

  /** Takes what the process has written. */
  push(chunk: string): void {
    const lines = (this.rest + chunk).split('\n');
    this.rest = lines.pop() ?? '';
    for (const text of lines) if (text !== '') this.add(parsed(text));
  }

  /** The process is over: whoever still waits for a line waits in vain. */
  end(why: string): void {
    this.ended = why;
    for (const { reject } of this.waiters) reject(new Error(why));
    this.waiters.clear();
  }

  /**
   * The first line of this message, written already or still to come.
   *
   * @throws Error when the process ends first, or after `timeoutMs`
   */
  async line(msg: string, timeoutMs = 60_000): Promise<LogLine> {
    const wanted = (line: LogLine): boolean => line.msg === msg;
    const there = this.all.find(wanted);
    if (there !== undefined) return there;
    if (this.ended !== undefined) throw new Error(`${this.ended}; it never logged "${msg}"`);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<LogLine>((resolve, reject) => {
        this.waiters.add({ wanted, resolve, reject });
        const tooLate = (): void => reject(new Error(`the operator did not log "${msg}" in ${String(timeoutMs)} ms`));
        timer = setTimeout(tooLate, timeoutMs);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** The lines of level `error` and above. */
  errors(): readonly LogLine[] {
    return this.all.filter(({ level }) => level === 'error' || level === 'fatal');
  }

  private add(line: LogLine): void {
    this.all.push(line);
    for (const waiter of this.waiters) {
      if (!waiter.wanted(line)) continue;
      this.waiters.delete(waiter);
      waiter.resolve(line);
    }
  }
}

/** A line that is no JSON (a crash of Node's own) is kept as an error. */
function parsed(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { level: 'error', msg: text, time: '' };
  }
}
