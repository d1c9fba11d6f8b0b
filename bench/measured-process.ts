import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Metrics } from '../testing';
import { LogLines } from '../testing/log-lines';
import type { Usage } from './results';

/** How often `/metrics` is polled, in milliseconds; each response costs the operator a little. */
const pollMs = 1000;
const idleTimeoutMs = 900_000;

/** How to start an operator and to observe it. */
export interface Program extends SpawnOptions {
  /** The line that it logs when its workers have started. */
  readonly reconcilingLine: string;
  /** Messages of errors that it logs even in a correct run. */
  readonly expectedErrors: readonly string[];
  /** The port of its metrics, possibly from its log. */
  readonly metricsPort: (log: LogLines) => Promise<number>;
}

/** A process of an operator, with its start time, CPU time and memory. */
export class MeasuredProcess {
  /** When the process was started, in milliseconds since the epoch. */
  readonly startedAt = Date.now();
  /**
   * Aborts with the exit code when the process ends, since callers that wait for its work would wait for
   * ever.
   */
  readonly gone: AbortSignal;
  private readonly log = new LogLines();
  private readonly exited: Promise<unknown>;

  private constructor(
    private readonly program: Program,
    private readonly child: ChildProcess,
  ) {
    const end = new AbortController();
    this.gone = end.signal;
    this.exited = once(child, 'close').then(([code]) => {
      const how = `the operator has ended (code ${String(code)})`;
      this.log.end(how);
      end.abort(new Error(how));
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => this.log.push(chunk));
    }
  }

  /**
   * Starts an operator.
   *
   * @param signal kills it
   */
  static start(program: Program, signal: AbortSignal): MeasuredProcess {
    return new MeasuredProcess(program, spawnWithSignal(program, 'ignore', signal));
  }

  /** Resolves when its workers have started; @returns milliseconds from the start of the process until then */
  async reconciling(): Promise<number> {
    await this.log.line(this.program.reconcilingLine, idleTimeoutMs);
    return Date.now() - this.startedAt;
  }

  /**
   * Waits until it has done this many reconciles and its queue is empty: in two polls with no reconcile in
   * between, since events of its last writes may still arrive.
   */
  async settled(reconciles: number): Promise<void> {
    await this.reconciling();
    const deadline = Date.now() + idleTimeoutMs;
    let before = -1;
    for (;;) {
      const { open, done } = await this.work();
      const quiet = open === 0 && done >= reconciles;
      if (quiet && done === before) return;
      before = quiet ? done : -1;
      if (Date.now() > deadline) throw new Error(`the operator still works after ${String(idleTimeoutMs)} ms`);
      await delay(pollMs);
    }
  }

  /** How many keys are queued or in progress, and how many reconciles are done. */
  async work(): Promise<{ readonly open: number; readonly done: number }> {
    const port = await this.program.metricsPort(this.log);
    const response = await fetch(`http://127.0.0.1:${String(port)}/metrics`);
    const metrics = Metrics.parse(await response.text());
    return {
      open: metrics.openWork(),
      done: metrics.sum('controller_runtime_reconcile_total'),
    };
  }

  /** Its resource usage until now. */
  usage(): Promise<Usage> {
    return usageOf(this.child.pid ?? 0);
  }

  /**
   * Stops it with SIGTERM, so that it also writes its pending events.
   *
   * @throws Error when it logged unexpected errors or exited with another code than 0
   */
  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    await this.exited;
    const [error] = this.log.errors().filter(({ msg }) => !this.program.expectedErrors.includes(msg));
    if (error !== undefined) throw new Error(`the operator logged an error: ${JSON.stringify(error)}`);
    if (this.child.exitCode !== 0) throw new Error(`the operator ended with code ${String(this.child.exitCode)}`);
  }
}

/** Options of {@link spawnWithSignal}. */
interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Its whole environment: nothing of this process's is passed on. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program that is killed by the signal, or when this process exits. */
export function spawnWithSignal(
  { command, args, env }: SpawnOptions,
  stdin: 'ignore' | 'pipe',
  signal: AbortSignal,
): ChildProcess {
  signal.throwIfAborted();
  const child = spawn(command, args, { stdio: [stdin, 'pipe', 'pipe'], env: { ...env } });
  const end = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  process.once('exit', end);
  child.once('close', () => {
    signal.removeEventListener('abort', end);
    process.removeListener('exit', end);
  });
  return child;
}

/** Ticks of `/proc/<pid>/stat`: USER_HZ, which is 100 on every architecture that Node runs on. */
const ticksPerSecond = 100;

/** Resource usage of a process, from `/proc`; NaN on systems without it. */
export async function usageOf(pid: number): Promise<Usage> {
  try {
    const [stat, status] = await Promise.all([read(pid, 'stat'), read(pid, 'status')]);
    // The second field, the program's name in parentheses, may hold spaces; utime and stime are the 14th and 15th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const peakKiB = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
      peakMiB: Number(peakKiB ?? NaN) / 1024,
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { cpuSeconds: NaN, peakMiB: NaN };
    throw error;
  }
}

function read(pid: number, file: string): Promise<string> {
  return readFile(`/proc/${String(pid)}/${file}`, 'utf8');
}
