import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LocalControlPlaneError } from '../local/assets/errors';
import { GuardedProcess, describeExit, pollUntilReady } from '../local/guarded-process';
import { freePort, loopback } from '../local/ports';
import { PORT_IN_USE } from '../operator/process/health-server';
import { withTimeout } from '../operator/process/wait';
import { CliError } from './errors';
import type { OperatorProgram } from './operator-bundle';
import { untilAborted } from './shutdown';

/** Options of {@link OperatorProcess}. */
interface OperatorProcessOptions {
  /** What it is called in messages. */
  readonly name: string;
  /** Its program. */
  readonly program: Pick<OperatorProgram, 'file' | 'packages'>;
  /** Its command line, without the address of its metrics. */
  readonly args: readonly string[];
  /** Port of its metrics on 127.0.0.1. @default a free one */
  readonly port?: number;
  /** Its log file; emptied first. */
  readonly logFile: string;
  /** Its working directory. */
  readonly folder: string;
  /** Starts beside another one: it waits until that gives the Lease up. @default false */
  readonly standby?: boolean;
  /** Adds to the log instead of emptying it. @default false */
  readonly appends?: boolean;
  /** Port of Node.js' inspector on 127.0.0.1. @default none */
  readonly inspect?: number | undefined;
  /** What `prewarm` has returned. It is started anew if that has ended meanwhile. @default it is started anew */
  readonly prewarmed?: GuardedProcess | undefined;
  readonly signal: AbortSignal;
}

/**
 * How long to wait for the operator to stop, in milliseconds. It finishes reconciles in flight within 25 s by
 * itself.
 */
const stopTimeoutMs = 30_000;
/** Attempts with another free port when another program takes the port before the operator does. */
const attempts = 3;

/** The operator as a separate process, which never outlives this one. */
export class OperatorProcess {
  readonly logFile: string;
  /** Rejects when the process ends and `stop()` was not called. */
  readonly unexpectedExit: Promise<never>;
  private stopping = false;

  private constructor(
    /** What it is called in messages. */
    readonly name: string,
    private readonly process: GuardedProcess,
    /** Port of `/metrics`. */
    readonly port: number,
  ) {
    this.logFile = process.logFile;
    this.unexpectedExit = this.watch();
    // Callers that await it get the error; nobody has to.
    this.unexpectedExit.catch(() => undefined);
  }

  /**
   * Starts the process of an operator that is not needed yet. It loads the packages that the program has now, which takes most of a
   * start, and waits for the program.
   */
  static prewarm(options: Omit<OperatorProcessOptions, 'signal'>): GuardedProcess {
    return spawnStarter(options, path.resolve(options.logFile));
  }

  /**
   * Starts it and waits until it serves its metrics, which it does before it reconciles.
   *
   * @throws CliError, with the last lines of its log, when it ends before that or takes longer than 60 s; the
   *   abort reason when `signal` aborts
   */
  static async start(options: OperatorProcessOptions): Promise<OperatorProcess> {
    const { signal } = options;
    const logFile = path.resolve(options.logFile);
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      if (options.appends !== true) await truncateLog(logFile);
      const port = options.port ?? (await freePort());
      const { prewarmed } = options;
      const guarded = attempt === 1 && prewarmed?.running === true ? prewarmed : spawnStarter(options, logFile);
      guarded.writeInput(JSON.stringify(argumentsOf(options, port)));
      try {
        await waitUntilServing(guarded, { port, signal });
        if (options.standby === true) await waitUntilSynced(guarded, port, signal);
        return new OperatorProcess(options.name, guarded, port);
      } catch (error) {
        const { lastLines } = await guarded.kill();
        const lostPort = options.port === undefined && lastLines.includes(PORT_IN_USE);
        if (lostPort && attempt < attempts) continue;
        if (error instanceof LocalControlPlaneError) throw new CliError(withAdvice(error.message), { cause: error });
        throw error;
      }
    }
  }

  /** Tells a standby that the Lease was given up. */
  takeOver(): void {
    this.process.signal('SIGUSR2');
  }

  /**
   * Lets it finish the reconciles in flight, then ends it.
   *
   * @param options.waits - it is not killed, however long it takes, unless this aborts. @default it is killed after 30 s
   * @throws the abort reason
   */
  async stop({ waits }: { readonly waits?: AbortSignal } = {}): Promise<void> {
    // A second one would have it leave what it is doing at once.
    if (!this.stopping) this.process.signal('SIGTERM');
    this.stopping = true;
    if (waits !== undefined) {
      await untilAborted(this.process.exited, waits);
      return;
    }
    const ended = this.process.exited.then(() => true);
    const inTime = await withTimeout(ended, { milliseconds: stopTimeoutMs, onTimeout: () => false });
    if (!inTime) await this.process.kill();
  }

  /** Ends it at once, whatever it does. */
  async kill(): Promise<void> {
    this.stopping = true;
    await this.process.kill();
  }

  private async watch(): Promise<never> {
    const exit = await this.process.exited;
    if (this.stopping) return new Promise<never>(() => undefined);
    throw new CliError(withAdvice(describeExit(exit, this.logFile)));
  }
}

async function truncateLog(logFile: string): Promise<void> {
  await writeFile(logFile, '').catch((cause: unknown) => {
    throw new CliError(
      `the operator cannot log to ${logFile}: ${cause instanceof Error ? cause.message : String(cause)}. ` +
        'Name a file in a folder that exists and that you may write to, with --log-file=FILE.',
      { cause },
    );
  });
}

/** The program of every operator's process: it loads packages, then waits for the operator and its command line. */
const starter = `
  const packages = process.argv.slice(1);
  // A program that calls runOperator without main listens to no takeOver, which would end it. It looks at the Lease every few seconds.
  process.on('SIGUSR2', () => {});
  // What cannot be loaded fails where the operator needs it.
  for (const name of packages) try { require(name); } catch {}
  process.argv = [process.argv[0], ...JSON.parse(require('node:fs').readFileSync(0, 'utf8'))];
  // As the main module.
  require('node:module').runMain();
`;

function spawnStarter(
  { name, program, folder, inspect }: Omit<OperatorProcessOptions, 'signal'>,
  logFile: string,
): GuardedProcess {
  return new GuardedProcess({
    part: `the ${name}`,
    program: process.execPath,
    args: [
      '--enable-source-maps',
      ...(inspect === undefined ? [] : [`--inspect=${loopback}:${inspect}`]),
      ...['-e', starter, '--', ...program.packages],
    ],
    cwd: folder,
    input: true,
    logFile,
  });
}

function argumentsOf({ program, args }: OperatorProcessOptions, port: number): readonly string[] {
  return [program.file, ...args, `--metrics-host=${loopback}`, `--metrics-port=${port}`];
}

function withAdvice(what: string): string {
  return `${what}\nThe objects stay as they are without it. If the log does not tell what to mend, please report it.`;
}

/** Options of {@link waitUntilServing}. */
interface ServingOptions {
  /** Port of `/metrics` on 127.0.0.1. */
  readonly port: number;
  readonly signal: AbortSignal;
  /** Milliseconds. @default 60000 */
  readonly timeoutMs?: number;
}

/** Timeout of one request, in milliseconds. */
const probeTimeoutMs = 2_000;

/** How much earlier the metrics may date a start, in milliseconds: they have it in whole seconds. */
const toleranceMs = 1_000;

/**
 * Waits until an operator serves its metrics. Sends requests to the port, since a log of level `warn` does
 * not mention it. Another program on the port is not mistaken for the operator, because the metrics contain
 * the start time of the process.
 *
 * @throws PartEndedError when the process ends first; LocalControlPlaneError at the timeout; both with the
 *   last lines of its log
 * @testonly
 */
export async function waitUntilServing(
  operator: GuardedProcess,
  { port, signal, timeoutMs = 60_000 }: ServingOptions,
): Promise<void> {
  const probe = async (): Promise<true | string> => {
    const metrics = await fetchText(`http://${loopback}:${port}/metrics`);
    if (metrics === undefined) return 'nothing answers there';
    const [, began] = /^process_start_time_seconds (\d+)$/m.exec(metrics) ?? [];
    const isOurs = began !== undefined && Number(began) * 1000 >= operator.startedAt - toleranceMs;
    // It may have ended since the response.
    return (isOurs && operator.running) || 'another program answers there';
  };
  const what = `${operator.part} to serve its metrics on ${loopback}:${port}`;
  await pollUntilReady(probe, { what, processes: [operator], timeoutMs, signal });
}

/** Waits until a standby knows all objects, so that it can begin at once. @throws as `waitUntilServing` */
async function waitUntilSynced(operator: GuardedProcess, port: number, signal: AbortSignal): Promise<void> {
  const probe = async (): Promise<true | string> => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]);
    const answer = await fetch(`http://${loopback}:${port}/readyz`, { signal: limit }).catch(() => undefined);
    return answer?.status === 200 || `it answers ${answer?.status ?? 'nothing'}`;
  };
  await pollUntilReady(probe, {
    what: `${operator.part} to know all objects`,
    processes: [operator],
    timeoutMs: 60_000,
    signal,
  });
}

async function fetchText(url: string): Promise<string | undefined> {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(probeTimeoutMs) })).text();
  } catch {
    // Refused, interrupted or too slow: the caller tries again in any case.
    return undefined;
  }
}
