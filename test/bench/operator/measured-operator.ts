import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { LogLines } from '../../../operator/testing/log-lines';
import { Metrics } from '../../../operator/testing';
import { usageOf } from './usage';
import type { Usage } from './usage';

/** How often `/metrics` is asked whether the work is done, in milliseconds; each answer costs the operator a little. */
const pollMs = 250;
const patienceMs = 600_000;

/** An operator's process whose start, CPU time and memory are known. */
export class MeasuredOperator {
  /** When the process was started, in milliseconds since the epoch. */
  readonly startedAt = Date.now();
  private readonly log = new LogLines();
  private readonly exited: Promise<unknown>;

  private constructor(private readonly child: ChildProcess) {
    this.exited = once(child, 'close').then(([code]) => this.log.end(`the operator has ended (code ${String(code)})`));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => this.log.push(chunk));
    }
  }

  /**
   * Starts a bundle, as the operator's image does.
   *
   * @param signal ends it at once
   */
  static start(bundle: string, args: readonly string[], signal: AbortSignal): MeasuredOperator {
    signal.throwIfAborted();
    const own = ['--metrics-port=0', '--metrics-host=127.0.0.1'];
    const child = spawn(process.execPath, [bundle, ...args, ...own], { stdio: ['ignore', 'pipe', 'pipe'], env: {} });
    const end = (): void => void child.kill('SIGKILL');
    signal.addEventListener('abort', end, { once: true });
    process.once('exit', end);
    child.once('close', () => {
      signal.removeEventListener('abort', end);
      process.removeListener('exit', end);
    });
    return new MeasuredOperator(child);
  }

  /** Resolves when its workers have started; @returns milliseconds from the start of the process until then */
  async reconciling(): Promise<number> {
    const { time } = await this.log.line('reconciling', patienceMs);
    return Date.parse(time) - this.startedAt;
  }

  /** Waits until it has looked at so many objects and has nothing left to do. */
  async settled(reconciles: number): Promise<void> {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const metrics = await this.metrics();
      const open = metrics.sum('workqueue_depth') + metrics.sum('controller_runtime_active_workers');
      if (open === 0 && metrics.sum('controller_runtime_reconcile_total') >= reconciles) return;
      if (Date.now() > deadline) throw new Error(`the operator still works after ${String(patienceMs)} ms`);
      await delay(pollMs);
    }
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
    const [error] = this.log.errors();
    if (error !== undefined) throw new Error(`the operator logged an error: ${JSON.stringify(error)}`);
    if (this.child.exitCode !== 0) throw new Error(`the operator ended with code ${String(this.child.exitCode)}`);
  }

  private async metrics(): Promise<Metrics> {
    const { port } = await this.log.line('serving /healthz, /readyz and /metrics');
    const response = await fetch(`http://127.0.0.1:${String(port)}/metrics`);
    return Metrics.parse(await response.text());
  }
}
