import type { ChildProcess } from 'node:child_process';
import { letGo, spawnGuarded } from '../../local/plane/guarded-process';
import { operatorBundle } from './bundle';
import { LogLines } from './log-lines';
import type { LogLine } from './log-lines';
import { Metrics } from './metrics';

/** How to run an operator. */
export interface OperatorProcessOptions {
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
export interface HealthAnswer {
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
    const bundle = await operatorBundle();
    const own = [`--kubeconfig=${options.kubeconfig}`, '--metrics-port=0', '--metrics-host=127.0.0.1'];
    const args = ['--enable-source-maps', bundle, ...(options.args ?? []), ...own];
    const child = spawnGuarded(process.execPath, args, { env: { ...options.env }, output: 'pipe' });
    letGo(child);
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
  async working(timeoutMs?: number): Promise<LogLine> {
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
    const { text } = await this.ask('/metrics');
    return Metrics.parse(text);
  }

  /** What `/readyz` says now. */
  async readyz(): Promise<HealthAnswer> {
    return this.ask('/readyz?verbose');
  }

  /** What `/healthz` says now. */
  async healthz(): Promise<HealthAnswer> {
    return this.ask('/healthz');
  }

  private async ask(path: string): Promise<HealthAnswer> {
    const { port } = await this.log.line('serving /healthz, /readyz and /metrics');
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
    return { status: response.status, text: await response.text() };
  }
}
