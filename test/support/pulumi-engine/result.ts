import type { LogEntry, Operation, SpawnedProcess } from './recorder';
import { Secret, Unknown, type Value, type Values, isMap, unwrap } from './values';

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
