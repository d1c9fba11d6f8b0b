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

  say(severity: Severity, message: string, urn?: string): void {
    this.log.push({ severity, message, ...(urn === undefined || urn === '' ? {} : { urn }) });
  }

  /** Errors that were said, each with its resource. */
  get errors(): readonly string[] {
    return this.log
      .filter((entry) => entry.severity === 'error')
      .map((entry) => (entry.urn === undefined ? entry.message : `${entry.urn}: ${entry.message}`));
  }
}
