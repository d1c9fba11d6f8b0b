import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { codeOf, LocalControlPlaneError } from '../errors';

/** How a process ended. */
export interface PartExit {
  /** Which part: `etcd`, `kube-apiserver`, ... */
  readonly part: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its log. */
  readonly lastLines: string;
}

/** What to run. */
export interface GuardedProcessOptions {
  readonly part: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Its working folder. */
  readonly cwd: string;
  /** Where stdout and stderr are appended. */
  readonly logFile: string;
}

/**
 * Runs a program so that it never outlives this process, whatever happens to this process, SIGKILL included.
 *
 * A watcher holds the reading end of a pipe whose writing end only we hold. The system closes our end when we die; the
 * watcher then kills the program. A line through the pipe tells it that the program is gone and there is nothing to
 * kill. The program itself takes the shell's place (`exec`), so its pid, exit code and signals are plainly its own.
 */
const guard = '(read -r done <&3 || kill -KILL $$) & exec 3<&-; exec "$@"';

/** How to run a program under guard. */
export interface GuardedSpawnOptions {
  /** Its working folder. @default this process's */
  readonly cwd?: string;
  /** Its whole environment. */
  readonly env: NodeJS.ProcessEnv;
  /** Where stdout and stderr go: a file descriptor, or a pipe to this process. */
  readonly output: number | 'pipe';
}

/**
 * Runs a program under guard: see `guard`. It is in a process group of its own, so that Ctrl-C in a terminal does not reach it. A program that has
 * been stopped (SIGSTOP) is killed like any other.
 */
export function spawnGuarded(program: string, args: readonly string[], options: GuardedSpawnOptions): ChildProcess {
  const { output, ...rest } = options;
  const child = spawn('/bin/sh', ['-c', guard, 'guard', program, ...args], {
    ...rest,
    detached: true,
    // The pipe is not stdin: Node closes that by itself when a process exits, and the watcher would take it for our death.
    stdio: ['ignore', output, output, 'pipe'],
  });
  const watcher = watcherOf(child);
  // It may be gone before we write; then there is nobody left to tell.
  watcher.on('error', () => undefined);
  child.once('exit', () => watcher.end('done\n'));
  return child;
}

/** A program of `spawnGuarded` no longer keeps this process alive; with this process it ends. */
export function letGo(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdout, child.stderr, watcherOf(child)]) (pipe as Socket | null)?.unref();
}

function watcherOf(child: ChildProcess): Socket {
  return child.stdio[3] as Socket;
}

/** A program that runs under guard and logs to a file. */
export class GuardedProcess {
  readonly part: string;
  readonly logFile: string;
  /** Settles when the program has ended, however it ended. */
  readonly exited: Promise<PartExit>;
  readonly #child: ChildProcess;
  #running = true;

  constructor(options: GuardedProcessOptions) {
    this.part = options.part;
    this.logFile = options.logFile;
    const log = openSync(options.logFile, 'a');
    try {
      this.#child = spawnGuarded(options.program, options.args, {
        cwd: options.cwd,
        // Nothing else from our environment: etcd, for one, takes every ETCD_* variable as a flag.
        env: { PATH: process.env['PATH'], HOME: options.cwd, TMPDIR: options.cwd },
        output: log,
      });
    } finally {
      closeSync(log);
    }
    this.exited = this.#watch();
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
    if (this.#running) this.#child.kill(signal);
  }

  /** Ends the program at once and waits until it is gone. */
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
    if (codeOf(error) === 'ENOENT') return ''; // the data folder is gone already
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
