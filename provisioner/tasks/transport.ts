import type { Machine } from '../../provision/task/task';

/** One script to run. */
export interface TransportRequest {
  /** @default this machine */
  readonly machine?: Machine | undefined;
  /** POSIX shell. Holds no secret: it can be seen in the list of processes. */
  readonly script: string;
  /** What the script reads from its stdin. May hold secrets. */
  readonly stdin: string;
  /** Time for the connection and the script together. */
  readonly timeoutSeconds: number;
  /** Cuts the run short. The script on another machine may go on. */
  readonly signal?: AbortSignal | undefined;
}

/** How a script ended. */
export interface TransportResult {
  readonly exitCode: number;
  /** Its end, where it was long. May hold secrets. */
  readonly stdout: string;
  /** Its end, where it was long. */
  readonly stderr: string;
}

/**
 * Carries a script to a machine.
 *
 * Guarantees: the script runs at most once a call; stdin goes through pipes and encrypted connections only; no prompt, no terminal; memory is
 * bounded whatever the script prints. A script that fails is a result, not an error.
 *
 * @throws MachineError when it is not known how the script ended, or it never started
 */
export interface Transport {
  run(request: TransportRequest): Promise<TransportResult>;
}

/** Why a run failed for other reasons than its script. */
export type MachineFailure =
  /** The machine showed another host key than the one it is known by. */
  | 'HostKeyMismatch'
  /** No host key is known, and trusting the first one is not allowed. */
  | 'HostKeyUnknown'
  /** The machine does not take the key for this user. */
  | 'AuthenticationFailed'
  /** The private key cannot be used: malformed, or behind a passphrase. */
  | 'InvalidKey'
  /** The machine's description cannot be used. */
  | 'InvalidMachine'
  /** Nothing was sent: the machine could not be reached. */
  | 'Unreachable'
  /** The connection ended before the script did; the script may still run. */
  | 'ConnectionLost'
  /** The script did not end in time; it may still run. */
  | 'TimedOut'
  /** The caller's signal ended it. */
  | 'Aborted'
  /** The program that carries the script (ssh, sh) cannot be started here. */
  | 'ProgramMissing';

/** A run failed for other reasons than its script. The message says what to do and holds no secret. */
export class MachineError extends Error {
  override readonly name = 'MachineError';
  constructor(
    readonly reason: MachineFailure,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** One transport for scripts that name a machine, another for those that do not. */
export class MachineTransport implements Transport {
  constructor(
    private readonly remote: Transport,
    private readonly local: Transport,
  ) {}

  async run(request: TransportRequest): Promise<TransportResult> {
    return (request.machine === undefined ? this.local : this.remote).run(request);
  }
}
