import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describeExit, GuardedProcess } from '../../local/plane/guarded-process';
import { within } from '../../operator/src/client/within';
import { CliError } from '../errors';
import { operatorBundle } from '../operator-bundle';

/** How to run the operator. */
export interface OperatorProcessOptions {
  readonly args: readonly string[];
  /** Where it logs; emptied first. */
  readonly logFile: string;
  /** Its working folder. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** The operator finishes what is in flight within 25 s by itself, in milliseconds. */
const patienceMs = 30_000;
const lookEveryMs = 50;

/** The operator as a process of its own, which never outlives this one. */
export class OperatorProcess {
  readonly logFile: string;
  /** Rejects when the process ends without having been asked to. */
  readonly died: Promise<never>;
  private stopping = false;

  private constructor(
    private readonly process: GuardedProcess,
    /** Port of `/metrics`. */
    readonly port: number,
  ) {
    this.logFile = process.logFile;
    this.died = this.watch();
    // Whoever waits for it is told; nobody has to.
    this.died.catch(() => undefined);
  }

  /**
   * Starts it and waits until it serves its metrics.
   *
   * @throws CliError when it ends before that, with the last lines of its log
   */
  static async start({ args, logFile, folder, signal }: OperatorProcessOptions): Promise<OperatorProcess> {
    const file = path.resolve(logFile);
    await writeFile(file, '').catch((cause: unknown) => {
      throw new CliError(
        `the operator cannot log to ${file}: ${cause instanceof Error ? cause.message : String(cause)}. ` +
          'Name a file in a folder that exists and that you may write to, with --log-file=FILE.',
        { cause },
      );
    });
    const guarded = new GuardedProcess({
      part: 'the operator',
      program: process.execPath,
      args: ['--enable-source-maps', operatorBundle(), ...args],
      cwd: folder,
      logFile: file,
    });
    try {
      return new OperatorProcess(guarded, await listeningPort(guarded, signal));
    } catch (error) {
      await guarded.kill();
      throw error;
    }
  }

  /** Lets it finish what is in flight, then ends it. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.process.signal('SIGTERM');
    const ended = this.process.exited.then(() => true);
    const inTime = await within(ended, { milliseconds: patienceMs, late: () => false });
    if (!inTime) await this.process.kill();
  }

  private async watch(): Promise<never> {
    const exit = await this.process.exited;
    if (this.stopping) return new Promise<never>(() => undefined);
    throw new CliError(ended(describeExit(exit, this.logFile)));
  }
}

function ended(how: string): string {
  return `${how}\nThe objects stay as they are without it. If the log does not tell what to mend, please report it.`;
}

/** Waits for the line in which the operator says where it listens. */
async function listeningPort(guarded: GuardedProcess, signal: AbortSignal): Promise<number> {
  for (;;) {
    signal.throwIfAborted();
    const port = portIn(await readFile(guarded.logFile, 'utf8'));
    if (port !== undefined) return port;
    if (!guarded.running) throw new CliError(ended(describeExit(await guarded.exited, guarded.logFile)));
    await delay(lookEveryMs, undefined, { signal });
  }
}

/** The port that a log of JSON lines tells of; half a line at its end is passed over. */
export function portIn(log: string): number | undefined {
  for (const line of log.split('\n')) {
    try {
      const { port } = JSON.parse(line) as { readonly port?: unknown };
      if (typeof port === 'number') return port;
    } catch {
      // Not written to its end yet, or not the logger's.
    }
  }
  return undefined;
}
