import type { GuardedProcess } from './guarded-process';
import { apiServerArgs, type ApiServerSettings } from './parts-args';
import { untilReady } from './ready';
import type { RestClient } from './rest';
import type { RunFolder } from './run-folder';
import type { RunningParts } from './running-parts';

/** What starts an API server, again and again if need be. */
export interface ApiServerOptions {
  readonly program: string;
  readonly run: RunFolder;
  readonly settings: ApiServerSettings;
  readonly rest: RestClient;
  /** For each start, in milliseconds. */
  readonly timeoutMs: number;
  readonly parts: RunningParts;
}

/** The API server of a run: one process at a time, always on the same port and the same data. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  #process: GuardedProcess | undefined;
  #paused = false;

  constructor(options: ApiServerOptions) {
    this.#options = options;
  }

  /** Whether it runs and is not paused. */
  get answering(): boolean {
    return this.#process?.running === true && !this.#paused;
  }

  /** Starts it unless it runs, and waits until /readyz says so. */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.#process?.running === true) return;
    const { program, run, parts, settings, rest, timeoutMs } = this.#options;
    const process = parts.start({
      part: 'kube-apiserver',
      program,
      args: apiServerArgs(settings),
      cwd: settings.certFolder,
      logFile: run.file('kube-apiserver.log'),
    });
    this.#process = process;
    this.#paused = false;
    const probe = async (): Promise<true | string> => {
      const { status, body } = await rest.ask('GET', '/readyz', { timeoutMs: 2000 });
      return status === 200 ? true : `/readyz answers ${status}: ${String(body)}`;
    };
    try {
      await untilReady(probe, { what: 'kube-apiserver to be ready', processes: [process], timeoutMs, signal });
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /** Ends it the way a crash does: at once, nothing flushed, connections cut. Does nothing when it does not run. */
  async kill(): Promise<void> {
    if (this.#process !== undefined) await this.#options.parts.kill(this.#process);
  }

  /** Freezes it: connections stay open and nothing answers, as when a network swallows packets. */
  pause(): void {
    this.#process?.signal('SIGSTOP');
    this.#paused = true;
  }

  /** Lets a frozen one go on. */
  resume(): void {
    this.#process?.signal('SIGCONT');
    this.#paused = false;
  }
}
