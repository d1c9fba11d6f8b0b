import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { runTool } from '../local/assets/process';

/** Operators that do the same work: ours, and two twins on controller-runtime, one tuned and one plain. */
export const operators = ['kindred', 'tuned', 'plain'] as const;
export type OperatorName = (typeof operators)[number];

/**
 * Bare loops, which only send requests: `same` sends the two requests of our operator (the child by POST),
 * `apply` sends both as server-side apply.
 */
export const limits = ['same', 'apply'] as const;
export type LimitName = (typeof limits)[number];

/** Names in tables and charts. */
export const labels: Readonly<Record<OperatorName | LimitName, string>> = {
  kindred: 'Kindred',
  tuned: 'controller-runtime, tuned',
  plain: 'controller-runtime, plain',
  same: 'bare requests (POST + apply)',
  apply: 'bare requests (apply + apply)',
};

/** Counts by name. */
export type Counts = Readonly<Record<string, number>>;

/** Resource usage of a process since its start; NaN if the system does not report it. */
export interface Usage {
  /** User and system time. */
  readonly cpuSeconds: number;
  /** Peak resident memory. */
  readonly peakMiB: number;
}

/** A new operator that reconciles new objects. */
export interface Converged extends Usage {
  /**
   * Objects per second, from when the server receives the first write until it answers the first status write
   * of the last object. Later writes change nothing.
   */
  readonly objectsPerSecond: number;
  /** Writes by verb, resource and code; without events and Leases. */
  readonly writes: Counts;
  readonly writesPerObject: number;
  readonly events: number;
  /** All requests by verb and code, including reads, events and Leases. */
  readonly requests: Counts;
  /** From the start of the process until the server receives its first write. */
  readonly firstWriteMs: number;
  /** From the start of the process until the server answers the first status write of the last object. */
  readonly convergedMs: number;
  /** From the start of the process until the server answers its last write. */
  readonly lastWriteMs: number;
}

/** An operator that is restarted with objects that need no change. */
export interface Restarted extends Usage {
  /** Without events and Leases. */
  readonly writes: Counts;
  readonly writeCount: number;
  readonly events: number;
  /**
   * From the start of the process until it has synced its caches, acquired its Lease and started its workers.
   */
  readonly reconcilingMs: number;
}

/** Changes of a spec, in milliseconds each. */
export interface Edits {
  /** From sending an object's first change until a watch shows the changed child. */
  readonly first: readonly number[];
  /** The same for later changes. */
  readonly later: readonly number[];
  /** From sending a change to its response, which is part of both. */
  readonly request: readonly number[];
}

/** What one operator did in one round. */
export interface OperatorRun {
  readonly converged: Converged;
  readonly restarted: Restarted;
  /** Absent if edits are not measured. */
  readonly edits?: Edits;
}

/** A run of a bare loop, in a separate process. */
export interface LimitRun extends Usage {
  /** As an operator's. */
  readonly objectsPerSecond: number;
}

/** One run of everything that a suite measures. */
export interface Round {
  readonly operators: Readonly<Partial<Record<OperatorName, OperatorRun>>>;
  readonly limits: Readonly<Partial<Record<LimitName, LimitRun>>>;
}

/** Rounds with one number of objects. */
export interface Suite {
  readonly objects: number;
  readonly rounds: readonly Round[];
}

/** A user's changes while an operator reconciles other objects. */
export interface BusyEdits {
  /** From sending a change until a watch shows the changed child, in milliseconds. */
  readonly toChild: readonly number[];
  /** From sending a change to its response. */
  readonly request: readonly number[];
}

/** One run of each operator. */
export type BusyRound = Readonly<Partial<Record<OperatorName, BusyEdits>>>;

/** Edits while operators are busy, round by round. */
interface Busy {
  /** How many other objects the operator reconciles meanwhile. */
  readonly objects: number;
  readonly rounds: readonly BusyRound[];
}

/** Writing the whole platform as YAML, in milliseconds from the start of the process to its end. */
export interface Synth {
  /** `npm run synth`. */
  readonly npm: readonly number[];
  /** The bundled command line: `node dist/cli.cjs synth`. */
  readonly bundle: readonly number[];
  /** `kustomize build` of the same output; empty if it is not available. */
  readonly kustomize: readonly number[];
  /** `node` with nothing to do. */
  readonly node: readonly number[];
}

/** The machine of the measurements. */
interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  /** Load average of the last minute before the benchmark began. */
  readonly load: number;
  /** The same at the end, including the benchmark's own work. */
  readonly loadAfter?: number;
}

/** The state of the sources that were measured. */
interface Code {
  /** The commit's short hash; `-` if git does not report one. */
  readonly commit: string;
  /** Whether files differ from that commit or are new; ignored files do not count. */
  readonly dirty: boolean;
}

/** The results of a run of the benchmark. */
export interface Results {
  readonly machine: Machine;
  /** Absent in results of earlier versions, as are the arguments. */
  readonly code?: Code;
  /** The arguments as they were given. */
  readonly args?: readonly string[];
  readonly kubernetes: string;
  /** What is missing, and why, in one line each. */
  readonly skipped: readonly string[];
  /** Concurrency of our operator and of the bare requests. */
  readonly concurrency: number;
  readonly peerWorkers: number;
  readonly suites: readonly Suite[];
  readonly busy: Busy | undefined;
  readonly synth: Synth | undefined;
}

/** This machine. */
export function thisMachine(): Machine {
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim() ?? 'unknown CPU',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    load: loadNow(),
  };
}

/** Load average of the last minute. */
export function loadNow(): number {
  return Number((loadavg()[0] ?? NaN).toFixed(2));
}

/** The machine in one line. */
export function machineLine(machine: Machine): string {
  const { cpus: count, model, memoryGiB, system, node } = machine;
  return `${String(count)} x ${model}, ${String(memoryGiB)} GiB, ${system}, Node ${node}, ${loads(machine)}`;
}

/** The kind of machine, without what identifies it. */
export function machineKind(machine: Machine): string {
  const { cpus: count, memoryGiB, system, node } = machine;
  const [kernel = ''] = system.split(' ');
  return `${String(count)} cores, ${String(memoryGiB)} GiB, ${kernel}, Node ${node}, ${loads(machine)}`;
}

function loads({ load, loadAfter }: Machine): string {
  const after = loadAfter === undefined ? '' : `, ${String(loadAfter)} at the end (the benchmark's own work included)`;
  return `load ${String(load)} at the start${after}`;
}

/**
 * The state of the sources in a directory according to git.
 *
 * @returns the commit `-` if git is missing or the directory is in no repository with a commit
 */
export async function codeIn(folder: string, signal: AbortSignal): Promise<Code> {
  // Without locks it writes nothing and blocks no other git command.
  const git = async (...args: readonly string[]): Promise<string | undefined> => {
    const options = { cwd: folder, env: process.env, signal };
    const result = await runTool('git', ['--no-optional-locks', ...args], options);
    return result?.code === 0 ? result.stdout.trim() : undefined;
  };
  const commit = await git('rev-parse', '--short', 'HEAD');
  if (commit === undefined) return { commit: '-', dirty: false };
  return { commit, dirty: (await git('status', '--porcelain')) !== '' };
}
