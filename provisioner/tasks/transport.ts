import type { Machine } from '../../provision/task/task';

/** One script to run. */
export interface TransportRequest {
  /** @default this machine */
  readonly machine?: Machine | undefined;
  /** POSIX shell. Contains no secret, since the list of processes shows it. */
  readonly script: string;
  /** What the script reads from its stdin. May contain secrets. */
  readonly stdin: string;
  /** Time for the connection and the script together, in seconds. */
  readonly timeoutSeconds: number;
  /** Aborts the run. A script on another machine may still run. */
  readonly signal?: AbortSignal | undefined;
}

/** How a script ended. */
export interface TransportResult {
  readonly exitCode: number;
  /** Only the end if it was long. May contain secrets. */
  readonly stdout: string;
  /** Only the end if it was long. */
  readonly stderr: string;
}

/**
 * Runs a script on a machine.
 *
 * Guarantees: the script runs at most once per call; stdin passes only through pipes and encrypted
 * connections; no prompt, no terminal; memory is bounded whatever the script prints. A failed script is a
 * result, not an error.
 *
 * @throws MachineError when the script never started, or it is not known how it ended
 */
export interface Transport {
  run(request: TransportRequest): Promise<TransportResult>;
}

/** Why a run failed for a reason other than its script. */
export type MachineFailure =
  /** The machine showed a host key other than the known one. */
  | 'HostKeyMismatch'
  /** No host key is known, and trusting the first one is not allowed. */
  | 'HostKeyUnknown'
  /** The machine does not accept the key for this user. */
  | 'AuthenticationFailed'
  /** The private key cannot be used: malformed, or protected by a passphrase. */
  | 'InvalidKey'
  /** The machine's description cannot be used. */
  | 'InvalidMachine'
  /** Nothing was sent: the machine could not be reached. */
  | 'Unreachable'
  /** The connection ended before the script did; the script may still run. */
  | 'ConnectionLost'
  /** The script did not end in time; it may still run. */
  | 'TimedOut'
  /** The caller's signal aborted the run. */
  | 'Aborted'
  /** The program that runs the script (ssh, sh) cannot be started here. */
  | 'ProgramMissing';

/** A run failed for a reason other than its script. The message says what to do and contains no secret. */
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

/** Runs scripts with a machine through `remote`, and those without through `local`. */
export class MachineTransport implements Transport {
  constructor(
    private readonly remote: Transport,
    private readonly local: Transport,
  ) {}

  async run(request: TransportRequest): Promise<TransportResult> {
    return (request.machine === undefined ? this.local : this.remote).run(request);
  }
}
