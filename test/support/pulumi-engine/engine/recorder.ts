import { Secret, Unknown, isMap, unwrap, type Value, type Values } from './values';

/** As Pulumi's own. */
export type Severity = 'debug' | 'info' | 'warning' | 'error';

/** A line that the real CLI would show. */
export interface LogEntry {
  readonly severity: Severity;
  readonly message: string;
  readonly urn?: string;
}

/** A process that a provider started: what any user of that machine can see of it. */
export interface SpawnedProcess {
  /** Where: `local`, or the address of a machine. */
  readonly where: string;
  readonly argv: readonly string[];
  /** What was added to the environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** What was done, or in a preview would be. */
export interface Operation {
  readonly op: 'create' | 'update' | 'replace' | 'delete' | 'delete-replaced' | 'same' | 'read' | 'import';
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** What differs: for updates and replacements. */
  readonly changed?: readonly string[];
  /** Only forgotten: the thing itself stays. */
  readonly retained?: boolean;
}

/** Keeps everything that a run says and does. */
export class Recorder {
  readonly operations: Operation[] = [];
  readonly log: LogEntry[] = [];
  readonly processes: SpawnedProcess[] = [];

  addLog(severity: Severity, message: string, urn?: string): void {
    this.log.push({ severity, message, ...(urn === undefined || urn === '' ? {} : { urn }) });
  }

  /** Errors that were said, each with its resource. */
  get errors(): readonly string[] {
    return this.log
      .filter((entry) => entry.severity === 'error')
      .map((entry) => (entry.urn === undefined ? entry.message : `${entry.urn}: ${entry.message}`));
  }
}

/** What a run, or a preview, did and said. */
export class Result {
  constructor(
    /** In the order they ended in. Components are not among them. */
    readonly operations: readonly Operation[],
    /** The stack's outputs, secrets and unknowns marked. */
    readonly outputs: Values,
    /** Everything that was said: by the program, the engine, and providers. */
    readonly log: readonly LogEntry[],
    readonly processes: readonly SpawnedProcess[],
    private readonly stateText: string,
  ) {}

  /** The operations that change something. */
  get changes(): readonly Operation[] {
    return this.operations.filter((operation) => operation.op !== 'same' && operation.op !== 'read');
  }

  /** `op name`, of those that change something, sorted: easy to compare. */
  get summary(): readonly string[] {
    return this.changes.map((operation) => `${operation.op} ${operation.name}`).sort();
  }

  /** An output of the stack without its secret mark; undefined when there is none. */
  output(name: string): Exclude<Value, Secret> | undefined {
    const value = this.outputs[name];
    return value === undefined ? undefined : unwrap(value);
  }

  /** Whether an output of the stack is a secret. */
  isSecret(name: string): boolean {
    return this.outputs[name] instanceof Secret;
  }

  /**
   * All that anyone can read of this run without the passphrase: the state as it lies on disk, what was said, arguments and environment
   * of processes, outputs as the CLI shows them.
   */
  plainText(): string {
    const parts = {
      operations: this.operations,
      log: this.log,
      processes: this.processes,
      outputs: shown(this.outputs),
    };
    return `${this.stateText}\n${JSON.stringify(parts, undefined, 2)}`;
  }
}

function shown(value: Value): unknown {
  if (value instanceof Secret) return '[secret]';
  if (value instanceof Unknown) return '[unknown]';
  if (Array.isArray(value)) return value.map(shown);
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(item)]));
}

/** Something of a run failed. The message has every diagnostic; `result` what was done all the same. */
export class DeploymentError extends Error {
  override readonly name = 'DeploymentError';
  constructor(
    message: string,
    readonly result: Result,
  ) {
    super(message);
  }
}

/** The run was ended from outside, as a killed `pulumi` is: what was under way is not in the state. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** The run goes no further since something else failed. Told to nobody: the cause is. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/**
 * Thrown by a provider: the resource is there, but did not become what it should. It is kept in the state, and the next run updates
 * it.
 */
export class PartialError extends Error {
  override readonly name = 'PartialError';
  constructor(
    message: string,
    readonly id: string,
    readonly outputs: Values,
  ) {
    super(message);
  }
}
