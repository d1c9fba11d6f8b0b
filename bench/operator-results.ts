import type { Machine } from './machine';

/** A fresh operator and objects that nobody has looked at. */
export interface Converged {
  /** Objects a second, from the server's receiving the first write to its answering the last. */
  readonly objectsPerSecond: number;
  /** Writes by verb, resource and code; without events and Leases. */
  readonly writes: Readonly<Record<string, number>>;
  readonly writesPerObject: number;
  readonly events: number;
  /** From the process's start to the server's receiving its first write. */
  readonly firstWriteMs: number;
  /** From the process's start to the server's answering its last write. */
  readonly convergedMs: number;
  /** User and system time of the process since its start; NaN where the system does not tell. */
  readonly cpuSeconds: number;
  readonly peakMiB: number;
}

/** An operator that comes back to objects that stand as they must. */
export interface Restarted {
  /** Without events and Leases. */
  readonly writes: Readonly<Record<string, number>>;
  readonly writeCount: number;
  readonly events: number;
  /** From the process's start to its caches synced, its Lease held and its workers started. */
  readonly reconcilingMs: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
}

/** The same writes by a bare loop of requests. */
export interface Limit {
  readonly objectsPerSecond: number;
}

/** Changes of a spec, in milliseconds each. */
export interface Edits {
  /** From sending the change to seeing the child changed: the first change of an object's life. */
  readonly first: readonly number[];
  /** The same, for later changes. */
  readonly later: readonly number[];
  /** From sending the change to its answer, which is part of both. */
  readonly request: readonly number[];
}

/** One turn of everything. */
export interface Round {
  /** Right before the operator converged, and right after. */
  readonly limits: readonly [before: Limit, after: Limit];
  readonly converged: Converged;
  readonly restarted: Restarted;
  readonly edits: Edits;
}

/** What a run of the benchmark found. */
export interface OperatorResults {
  readonly machine: Machine;
  readonly kubernetes: string;
  readonly objects: number;
  readonly concurrency: number;
  readonly rounds: readonly Round[];
}
