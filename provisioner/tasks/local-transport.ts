import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { MachineError, type Transport, type TransportRequest, type TransportResult } from './transport';

/** Runs scripts on this machine with `sh`, as the user of this process. */
export class LocalTransport implements Transport {
  /** @param env - environment of the scripts. @default only PATH and HOME of this process */
  constructor(private readonly env?: Readonly<Record<string, string>>) {}

  async run({ machine, script, stdin, timeoutSeconds, signal }: TransportRequest): Promise<TransportResult> {
    if (machine !== undefined) {
      throw new MachineError('InvalidMachine', `${machine.address} is another machine; it takes a transport by SSH`);
    }
    const where = 'on this machine';
    const args = ['-c', script];
    const env = this.env ?? { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '/' };
    const end = await runProgram({ program: 'sh', args, env, stdin, timeoutSeconds, signal, where });
    const { exitCode, stdout, stderr } = end;
    if (exitCode !== null) return { exitCode, stdout, stderr };
    throw new MachineError('ConnectionLost', `the script ${where} was ended by a signal; running it again is safe`);
  }
}

/** A program to run. */
interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly timeoutSeconds: number;
  readonly signal?: AbortSignal | undefined;
  /** Where it runs, for messages: `on 10.0.0.1`. */
  readonly where: string;
}

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Bytes of stdout to keep: its last line is the result, which may contain a kubeconfig or RKE's state. */
const STDOUT_BYTES = 4 * 1024 * 1024;
const STDERR_BYTES = 64 * 1024;
/** Time from SIGTERM to SIGKILL. */
const GRACE_MS = 2000;

/**
 * Runs a program to its end.
 *
 * @throws MachineError `TimedOut`, `Aborted` or `ProgramMissing`
 */
export async function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  if (run.signal?.aborted === true) throw aborted(run);
  // In a process group of its own, so that its child processes can be ended with it.
  const child = spawn(run.program, run.args, { env: run.env, stdio: 'pipe', detached: true });
  const stdout = new TailBuffer(STDOUT_BYTES);
  const stderr = new TailBuffer(STDERR_BYTES);
  child.stdout.on('data', (chunk: Buffer) => stdout.add(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk));
  // A program may end without reading all of its stdin; its exit code decides.
  child.stdin.on('error', () => undefined);
  child.stdin.end(run.stdin);
  const why: MachineError[] = [];
  const cut = (error: MachineError): void => {
    why.push(error);
    endGroup(child);
  };
  const timer = setTimeout(() => cut(timedOut(run)), run.timeoutSeconds * 1000);
  const onAbort = (): void => cut(aborted(run));
  run.signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const exitCode = await ended(child, run);
    if (why[0] !== undefined) throw why[0];
    return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  } finally {
    clearTimeout(timer);
    run.signal?.removeEventListener('abort', onAbort);
  }
}

function ended(child: ChildProcessWithoutNullStreams, { program, where }: ProgramRun): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', (cause) => {
      const what = `cannot run a script ${where}: "${program}" cannot be started. Install it, or put it on PATH`;
      reject(new MachineError('ProgramMissing', what, { cause }));
    });
  });
}

function endGroup(child: ChildProcessWithoutNullStreams): void {
  signalGroup(child, 'SIGTERM');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS);
  child.once('close', () => clearTimeout(timer));
}

function signalGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended already
  }
}

function timedOut({ timeoutSeconds, where }: ProgramRun): MachineError {
  return new MachineError(
    'TimedOut',
    `the script ${where} did not end within ${Math.ceil(timeoutSeconds)} s. It may still run there; running it again is safe and waits for it. ` +
      'Look at what the machine is busy with: its load, its disk, what it downloads',
  );
}

function aborted({ where }: ProgramRun): MachineError {
  return new MachineError('Aborted', `the script ${where} was cut short from here; running it again is safe`);
}

/** Keeps the end of a stream of bytes. */
class TailBuffer {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** @param limit - bytes to keep */
  constructor(private readonly limit: number) {}

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      const [first] = this.#chunks;
      if (first === undefined || this.#length - first.length < this.limit) return;
      this.#chunks.shift();
      this.#length -= first.length;
    }
  }

  toString(): string {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - this.limit)).toString('utf8');
  }
}
