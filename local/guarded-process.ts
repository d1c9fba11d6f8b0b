import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalControlPlaneError, codeOf, messageOf } from './assets/errors';
import { duration } from './assets/progress';

/** How to run a program under guard. */
interface GuardedSpawnOptions {
  /** Its working directory. @default this process's */
  readonly cwd?: string;
  /** All of its environment variables. */
  readonly env: NodeJS.ProcessEnv;
  /** Where stdout and stderr go: a file descriptor, or a pipe to this process. */
  readonly output: number | 'pipe';
  /** Its stdin is a pipe from this process. @default false: it is empty */
  readonly input?: boolean | undefined;
  /** See {@link GuardedProcessOptions.endsWithPipe}. @default false */
  readonly endsWithPipe?: boolean | undefined;
}

/**
 * Runs a program under guard: see `guard`. It gets a process group of its own, so that Ctrl-C in a terminal
 * does not reach it. A program that has been stopped (SIGSTOP) is killed like any other.
 */
export function spawnGuarded(program: string, args: readonly string[], options: GuardedSpawnOptions): ChildProcess {
  const { output, input = false, endsWithPipe = false, ...rest } = options;
  const script = endsWithPipe ? [] : ['-c', guard, 'guard'];
  const child = spawn('/bin/sh', [...script, program, ...args], {
    ...rest,
    detached: true,
    // The pipe of the guard is not stdin: Node closes stdin by itself when a process exits, and the watcher would take
    // that for our death.
    stdio: [input ? 'pipe' : 'ignore', output, output, 'pipe'],
  });
  const watcher = watcherOf(child);
  // The watcher may have ended before we write, and the program too; then there is nothing to tell them.
  watcher.on('error', () => undefined);
  child.stdin?.on('error', () => undefined);
  child.once('exit', () => watcher.end('done\n'));
  return child;
}

/**
 * A shell script that runs a program so that it never outlives this process, however this process ends,
 * SIGKILL included.
 *
 * A watcher has the reading end of a pipe whose writing end only this process has. The system closes our end
 * when we die; the watcher then kills the program. A line through the pipe tells the watcher that the program
 * has ended and there is nothing to kill. The program replaces the shell (`exec`), so its pid, exit code and
 * signals are its own.
 */
const guard = '(read -r done <&3 || kill -KILL $$) & exec 3<&-; exec "$@"';

/** A program of `spawnGuarded` no longer keeps this process alive; it still ends with this process. */
export function unrefGuarded(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdout, child.stderr, watcherOf(child)]) (pipe as Socket | null)?.unref();
}

function watcherOf(child: ChildProcess): Socket {
  return child.stdio[3] as Socket;
}

/** How a process ended. */
export interface PartExit {
  /** Which part: `etcd`, `kube-apiserver`, ... */
  readonly part: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its log. */
  readonly lastLines: string;
}

/** The program of a part. */
interface GuardedProcessOptions {
  readonly part: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Its working directory. */
  readonly cwd: string;
  /** Where stdout and stderr are appended. */
  readonly logFile: string;
  /** It reads its stdin, which `writeInput` ends. @default false: it is empty */
  readonly input?: boolean;
  /** Variables besides PATH, HOME and TMPDIR. @default none */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The program is a shell script that reads a pipe at its descriptor 3, and ends by itself, with everything that it started, once
   * that is closed. `kill` and SIGKILL close the pipe; nothing else ends the program.
   * @default false: it is killed
   */
  readonly endsWithPipe?: boolean;
}

/** A program that runs under guard and logs to a file. */
export class GuardedProcess {
  readonly part: string;
  readonly logFile: string;
  /** When it was started, or a moment before, by `Date.now()`. */
  readonly startedAt = Date.now();
  /** Settles when the program has ended, for whatever reason. */
  readonly exited: Promise<PartExit>;
  readonly #child: ChildProcess;
  readonly #endsWithPipe: boolean;
  #running = true;

  constructor(options: GuardedProcessOptions) {
    this.part = options.part;
    this.logFile = options.logFile;
    this.#endsWithPipe = options.endsWithPipe ?? false;
    const log = openSync(options.logFile, 'a');
    try {
      this.#child = spawnGuarded(options.program, options.args, {
        cwd: options.cwd,
        // Nothing else from our environment: etcd, for example, takes every ETCD_* variable as a flag.
        env: { PATH: process.env['PATH'], HOME: options.cwd, TMPDIR: options.cwd, ...options.env },
        output: log,
        input: options.input,
        endsWithPipe: options.endsWithPipe,
      });
    } finally {
      closeSync(log);
    }
    this.exited = this.#watch();
    // Whoever waits for it gets the error; nobody has to.
    this.exited.catch(() => undefined);
  }

  get running(): boolean {
    return this.#running;
  }

  /** The program's pid; undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a signal to the program; does nothing once it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#running) return;
    if (this.#endsWithPipe && signal === 'SIGKILL') watcherOf(this.#child).destroy();
    else this.#child.kill(signal);
  }

  /** Writes a line to the pipe of a program that reads it: see {@link GuardedProcessOptions.endsWithPipe}. */
  writeLine(line: string): void {
    watcherOf(this.#child).write(`${line}\n`);
  }

  /** Writes all that the program is to read from its stdin. */
  writeInput(text: string): void {
    this.#child.stdin?.end(text);
  }

  /** Kills the program and waits until it has ended. */
  async kill(): Promise<PartExit> {
    this.signal('SIGKILL');
    return this.exited;
  }

  /** The last lines it logged. */
  async lastLines(): Promise<string> {
    return tail(this.logFile, 4000, 12);
  }

  async #watch(): Promise<PartExit> {
    const child = this.#child;
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', (cause) => {
        this.#running = false;
        reject(new LocalControlPlaneError(`cannot start ${this.part}: is there a /bin/sh?`, { cause }));
      });
      child.once('exit', (code, signal) => {
        this.#running = false;
        resolve([code, signal]);
      });
    });
    return { part: this.part, code, signal, lastLines: await this.lastLines() };
  }
}

/** How a process ended, in words. */
export function describeExit({ part, code, signal, lastLines }: PartExit, logFile: string): string {
  const how = signal === null ? `exited with code ${code ?? 'unknown'}` : `was ended by ${signal}`;
  return `${part} ${how}. The last lines of ${logFile}:\n${lastLines === '' ? '(empty)' : lastLines}`;
}

async function tail(file: string, bytes: number, lines: number): Promise<string> {
  let handle;
  try {
    handle = await open(file, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''; // the data directory was removed already
    throw error;
  }
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.min(size, bytes));
    await handle.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } finally {
    await handle.close();
  }
}

/** Tracks the processes of a run, and reports those that end unexpectedly. */
export class RunningParts {
  readonly #processes = new Set<GuardedProcess>();
  readonly #expected = new Set<GuardedProcess>();
  readonly #listeners = new Set<(exit: PartExit) => void>();
  #closed = false;

  /**
   * Starts a program and tracks it.
   *
   * @throws LocalControlPlaneError once the run is being stopped
   */
  start(options: GuardedProcessOptions): GuardedProcess {
    if (this.#closed) {
      throw new LocalControlPlaneError(`cannot start ${options.part}: the control plane has been stopped`);
    }
    const process = new GuardedProcess(options);
    this.#processes.add(process);
    this.#watch(process);
    return process;
  }

  /** Kills one process on purpose, and waits until it has ended. */
  async kill(process: GuardedProcess): Promise<void> {
    if (process.running) this.#expected.add(process);
    await process.kill();
  }

  /** Calls back when a process ends unexpectedly; returns a function that removes the listener. */
  onExit(listener: (exit: PartExit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Kills everything without waiting: for the end of this process. */
  signalAll(): void {
    this.#closed = true;
    for (const process of this.#processes) {
      this.#expected.add(process);
      process.signal('SIGKILL');
    }
  }

  /** Kills everything and waits until it has ended. Nothing is flushed, since the data is deleted too. */
  async killAll(): Promise<void> {
    const all = [...this.#processes];
    this.signalAll();
    // A process that could not be started needs no wait.
    await Promise.allSettled(all.map((process) => process.exited));
  }

  #watch(process: GuardedProcess): void {
    void process.exited.then(
      (exit) => {
        this.#processes.delete(process);
        if (this.#expected.delete(process)) return;
        for (const listener of this.#listeners) listener(exit);
      },
      // It was never started: the caller that waits until it is ready throws that error.
      () => this.#processes.delete(process),
    );
  }
}

/** What to wait for. */
interface ReadyOptions {
  /** What should become true, for messages: "kube-apiserver to be ready". */
  readonly what: string;
  /** The processes that have to run for it. */
  readonly processes: readonly GuardedProcess[];
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Checks whether it is true yet: `true`, or what is missing, in words. */
export type Probe = () => Promise<true | string>;

/**
 * A process that has to run has ended.
 *
 * @testonly
 */
export class PartEndedError extends LocalControlPlaneError {
  override readonly name = 'PartEndedError';
}

/**
 * Polls until the probe returns true.
 *
 * @throws PartEndedError when one of the processes ends first, with the last lines of its log
 * @throws LocalControlPlaneError at the deadline, with what was missing last; the abort reason when `signal` aborts
 */
export async function pollUntilReady(probe: Probe, options: ReadyOptions): Promise<void> {
  const started = Date.now();
  let missing = 'nothing was seen yet';
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const seen = await probe();
      if (seen === true) return;
      missing = seen;
    } catch (error) {
      missing = messageOf(error); // not reachable yet: keep polling
    }
    for (const process of options.processes) {
      if (!process.running) throw new PartEndedError(describeExit(await process.exited, process.logFile));
    }
    if (Date.now() - started > options.timeoutMs) throw await timeoutError(missing, options);
    await delay(pollMs, undefined, { signal: options.signal }).catch((error: unknown) => {
      // Node.js rejects with an error of its own.
      options.signal?.throwIfAborted();
      throw error;
    });
  }
}

/** Pause between two checks, in milliseconds. */
const pollMs = 40;

async function timeoutError(missing: string, options: ReadyOptions): Promise<Error> {
  const logs = await Promise.all(
    options.processes.map(async (process) => `The last lines of ${process.logFile}:\n${await process.lastLines()}`),
  );
  const message = `waited ${duration(options.timeoutMs)} for ${options.what}; last seen: ${missing}.`;
  return new LocalControlPlaneError([message, ...logs].join('\n'));
}

/** Starts something on free ports; starts over when another program has taken a port since it was checked. */
export async function retryOnPortConflict<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      const lostPort = error instanceof PartEndedError && /address already in use/i.test(messageOf(error));
      if (!lostPort || attempt === attempts) throw error;
    }
  }
}

const attempts = 3;
