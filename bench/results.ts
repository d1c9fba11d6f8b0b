import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { runTool } from '../local/assets/process';

/** Operators that do the same work: ours, and two twins on controller-runtime. */
export const operators = ['kindred', 'tuned', 'plain'] as const;
export type OperatorName = (typeof operators)[number];

/**
 * Bare loops of requests: `same` makes the two requests that our operator makes (the child by POST), `apply` makes both by server-side
 * apply.
 */
export const limits = ['same', 'apply'] as const;
export type LimitName = (typeof limits)[number];

/** How often, by name. */
export type Counts = Readonly<Record<string, number>>;

/** What a process has used since its start; NaN where the system does not tell. */
export interface Usage {
  /** User and system time. */
  readonly cpuSeconds: number;
  /** The most memory that it has ever had resident. */
  readonly peakMiB: number;
}

/** A fresh operator and objects that nobody has looked at. */
export interface Converged extends Usage {
  /**
   * Objects a second, from the server's receiving the first write to its answering the first write of a status of the last object: what is
   * written again after that changes nothing.
   */
  readonly objectsPerSecond: number;
  /** Writes by verb, resource and code; without events and Leases. */
  readonly writes: Counts;
  readonly writesPerObject: number;
  readonly events: number;
  /** All requests by verb and code, reads, events and Leases too. */
  readonly requests: Counts;
  /** From the process's start to the server's receiving its first write. */
  readonly firstWriteMs: number;
  /** From the process's start to the server's answering the first write of a status of the last object. */
  readonly convergedMs: number;
  /** From the process's start to the server's answering its last write. */
  readonly lastWriteMs: number;
}

/** An operator that comes back to objects that stand as they must. */
export interface Restarted extends Usage {
  /** Without events and Leases. */
  readonly writes: Counts;
  readonly writeCount: number;
  readonly events: number;
  /** From the process's start to its caches synced, its Lease held and its workers started. */
  readonly reconcilingMs: number;
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

/** What one operator did in one round. */
export interface OperatorRun {
  readonly converged: Converged;
  readonly restarted: Restarted;
  /** Absent where edits are not measured. */
  readonly edits?: Edits;
}

/** A bare loop of requests, in a process of its own. */
export interface LimitRun extends Usage {
  /** As an operator's. */
  readonly objectsPerSecond: number;
}

/** One turn of everything that a suite measures. */
export interface Round {
  readonly operators: Readonly<Partial<Record<OperatorName, OperatorRun>>>;
  readonly limits: Readonly<Partial<Record<LimitName, LimitRun>>>;
}

/** Rounds with one number of objects. */
export interface Suite {
  readonly objects: number;
  readonly rounds: readonly Round[];
}

/** A user's changes while an operator brings other objects about. */
export interface BusyEdits {
  /** From sending the change to seeing the child changed, in milliseconds. */
  readonly toChild: readonly number[];
  /** From sending the change to its answer. */
  readonly request: readonly number[];
}

/** One turn of each operator. */
export type BusyRound = Readonly<Partial<Record<OperatorName, BusyEdits>>>;

/** Edits while operators are busy, round by round. */
interface Busy {
  /** How many others are brought about meanwhile. */
  readonly objects: number;
  readonly rounds: readonly BusyRound[];
}

/** Writing the whole platform as YAML, in milliseconds from the start of the process to its end. */
export interface Synth {
  /** `npm run synth`. */
  readonly npm: readonly number[];
  /** The bundled command line: `node dist/cli.cjs synth`. */
  readonly bundle: readonly number[];
  /** `kustomize build` of the same output; none where it cannot be had. */
  readonly kustomize: readonly number[];
  /** `node` with nothing to do. */
  readonly node: readonly number[];
}

/** The state of the sources that were measured. */
interface Code {
  /** The commit's short name; `-` where git tells none. */
  readonly commit: string;
  /** Whether files differ from that commit, new ones too; what git ignores does not count. */
  readonly dirty: boolean;
}

/** What a run of the benchmark found. */
export interface Results {
  readonly machine: Machine;
  /** Absent in what earlier benchmarks wrote, as are the arguments. */
  readonly code?: Code;
  /** The command line's, as they were given. */
  readonly args?: readonly string[];
  readonly kubernetes: string;
  /** What is missing, and why, in one line each. */
  readonly skipped: readonly string[];
  /** Objects at once, for our operator and for the bare requests. */
  readonly concurrency: number;
  readonly peerWorkers: number;
  readonly suites: readonly Suite[];
  readonly busy: Busy | undefined;
  readonly synth: Synth | undefined;
}

/** How each is called in tables and charts. */
export const labels: Readonly<Record<OperatorName | LimitName, string>> = {
  kindred: 'Kindred',
  tuned: 'controller-runtime, tuned',
  plain: 'controller-runtime, plain',
  same: 'bare requests (POST + apply)',
  apply: 'bare requests (apply + apply)',
};

/** What it was measured on. */
interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  /** Processes that ran or waited over the last minute, before the benchmark began. */
  readonly load: number;
  /** The same when all was measured, the benchmark's own work included. */
  readonly loadAfter?: number;
}

/** This machine, as it stands. */
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

/** Processes that ran or waited over the last minute. */
export function loadNow(): number {
  return Number((loadavg()[0] ?? NaN).toFixed(2));
}

/** One line. */
export function machineLine(machine: Machine): string {
  const { cpus: count, model, memoryGiB, system, node } = machine;
  return `${String(count)} x ${model}, ${String(memoryGiB)} GiB, ${system}, Node ${node}, ${loads(machine)}`;
}

/** What kind of machine it is, in words that fit many. */
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
 * The state of the sources in a folder, as git tells it.
 *
 * @returns the commit `-` where git is missing or the folder is in no repository with a commit
 */
export async function codeIn(folder: string, signal: AbortSignal): Promise<Code> {
  // Without the locks it writes nothing, and stands in nobody's way.
  const git = async (...args: readonly string[]): Promise<string | undefined> => {
    const options = { cwd: folder, env: process.env, signal };
    const result = await runTool('git', ['--no-optional-locks', ...args], options);
    return result?.code === 0 ? result.stdout.trim() : undefined;
  };
  const commit = await git('rev-parse', '--short', 'HEAD');
  if (commit === undefined) return { commit: '-', dirty: false };
  return { commit, dirty: (await git('status', '--porcelain')) !== '' };
}
