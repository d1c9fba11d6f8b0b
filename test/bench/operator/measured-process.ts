import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Usage } from '../../../bench/results';
import { LogLines } from '../../../testing/operator-process';
import { Metrics } from '../../../testing';
import { spawnFor, type Start } from './spawn-for';
import { usageOf } from './usage';

/** How often `/metrics` is asked whether the work is done, in milliseconds; each answer costs the operator a little. */
const pollMs = 1000;
const patienceMs = 900_000;

/** How to start an operator and to tell what it does. */
export interface Program extends Start {
  /** What it logs when its workers have started. */
  readonly reconcilingLine: string;
  /** Messages of errors that it logs though all is well. */
  readonly harmless: readonly string[];
  /** Where its metrics are, once it has begun to log. */
  readonly metricsPort: (log: LogLines) => Promise<number>;
}

/** An operator's process whose start, CPU time and memory are known. */
export class MeasuredProcess {
  /** When the process was started, in milliseconds since the epoch. */
  readonly startedAt = Date.now();
  /** Aborts when the process ends, with how it did: what waits for its work would wait for ever. */
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
   * @param signal ends it at once
   */
  static start(program: Program, signal: AbortSignal): MeasuredProcess {
    return new MeasuredProcess(program, spawnFor(program, 'ignore', signal));
  }

  /** Resolves when its workers have started; @returns milliseconds from the start of the process until then */
  async reconciling(): Promise<number> {
    await this.log.line(this.program.reconcilingLine, patienceMs);
    return Date.now() - this.startedAt;
  }

  /**
   * Waits until it has looked at so many objects and has nothing left to do: twice in a row, with nothing done in between, since what it
   * wrote last may still come back to it.
   */
  async settled(reconciles: number): Promise<void> {
    await this.reconciling();
    const deadline = Date.now() + patienceMs;
    let before = -1;
    for (;;) {
      const { open, done } = await this.work();
      const quiet = open === 0 && done >= reconciles;
      if (quiet && done === before) return;
      before = quiet ? done : -1;
      if (Date.now() > deadline) throw new Error(`the operator still works after ${String(patienceMs)} ms`);
      await delay(pollMs);
    }
  }

  /** How many keys wait or are worked on, and how many reconciles are done. */
  async work(): Promise<{ readonly open: number; readonly done: number }> {
    const port = await this.program.metricsPort(this.log);
    const response = await fetch(`http://127.0.0.1:${String(port)}/metrics`);
    const metrics = Metrics.parse(await response.text());
    return {
      open: metrics.sum('workqueue_depth') + metrics.sum('controller_runtime_active_workers'),
      done: metrics.sum('controller_runtime_reconcile_total'),
    };
  }

  /** What it has used until now. */
  usage(): Promise<Usage> {
    return usageOf(this.child.pid ?? 0);
  }

  /**
   * Asks it to stop, which also has it write the events that wait.
   *
   * @throws Error when it logged errors or did not end in good order
   */
  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    await this.exited;
    const [error] = this.log.errors().filter(({ msg }) => !this.program.harmless.includes(msg));
    if (error !== undefined) throw new Error(`the operator logged an error: ${JSON.stringify(error)}`);
    if (this.child.exitCode !== 0) throw new Error(`the operator ended with code ${String(this.child.exitCode)}`);
  }
}
