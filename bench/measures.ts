import {
  limits,
  operators,
  type BusyEdits,
  type Edits,
  type LimitName,
  type LimitRun,
  type OperatorName,
  type OperatorRun,
  type Results,
  type Round,
  type Suite,
} from './results';

/** A figure of one run. */
export interface Measure<Run> {
  readonly name: string;
  readonly of: (run: Run) => number;
}

/** The figures of an operator's run. */
export const measures: readonly Measure<OperatorRun>[] = [
  { name: 'objects/s', of: ({ converged }) => converged.objectsPerSecond },
  { name: 'writes/object', of: ({ converged }) => converged.writesPerObject },
  { name: 'events', of: ({ converged }) => converged.events },
  { name: 'CPU s', of: ({ converged }) => converged.cpuSeconds },
  { name: 'peak RSS MiB', of: ({ converged }) => converged.peakMiB },
  { name: 'start to first write ms', of: ({ converged }) => converged.firstWriteMs },
  { name: 'start to all done ms', of: ({ converged }) => converged.convergedMs },
  { name: 'start to last write ms', of: ({ converged }) => converged.lastWriteMs },
  { name: 'restart: writes', of: ({ restarted }) => restarted.writeCount },
  { name: 'restart: start to reconciling ms', of: ({ restarted }) => restarted.reconcilingMs },
  { name: 'restart: CPU s', of: ({ restarted }) => restarted.cpuSeconds },
  { name: 'restart: peak RSS MiB', of: ({ restarted }) => restarted.peakMiB },
];

/** The figures of a bare loop. */
export const limitMeasures: readonly Measure<LimitRun>[] = [
  { name: 'objects/s', of: (run) => run.objectsPerSecond },
  { name: 'CPU s', of: (run) => run.cpuSeconds },
  { name: 'peak RSS MiB', of: (run) => run.peakMiB },
];

/** The runs of an operator, round by round; rounds without it are left out. */
export function runsOf({ rounds }: Suite, name: OperatorName): readonly OperatorRun[] {
  return rounds.flatMap(({ operators: { [name]: run } }) => (run === undefined ? [] : [run]));
}

/** The operators with figures in a suite. */
export function operatorsOf(suite: Suite): readonly OperatorName[] {
  return operators.filter((name) => runsOf(suite, name).length > 0);
}

/** The bare loops with figures in a suite. */
export function limitsOf({ rounds }: Suite): readonly LimitName[] {
  return limits.filter((name) => rounds.some((round) => round.limits[name] !== undefined));
}

/** The runs of a bare loop, round by round. */
export function limitRunsOf({ rounds }: Suite, name: LimitName): readonly LimitRun[] {
  return rounds.flatMap(({ limits: { [name]: run } }) => (run === undefined ? [] : [run]));
}

/** An operator's edits when idle, round by round, of all suites. */
export function editsOf({ suites }: Pick<Results, 'suites'>, name: OperatorName): readonly Edits[] {
  const runs = suites.flatMap((suite) => runsOf(suite, name));
  return runs.flatMap(({ edits }) => (edits === undefined ? [] : [edits]));
}

/** An operator's edits when busy, round by round, without rounds that ended before the first edit. */
export function busyEditsOf({ busy }: Pick<Results, 'busy'>, name: OperatorName): readonly BusyEdits[] {
  return (busy?.rounds ?? []).flatMap(({ [name]: edits }) => (edits?.toChild.length ? [edits] : []));
}

/** Objects per second of an operator or a bare loop in one round; undefined if it was not measured. */
export function rateOf(round: Round, name: OperatorName | LimitName): number | undefined {
  const run = name === 'same' || name === 'apply' ? round.limits[name] : round.operators[name]?.converged;
  return run?.objectsPerSecond;
}

/**
 * Our objects per second as a multiple of another's, within each round, so that a slow phase of the machine
 * affects both.
 */
export function ratiosTo(suite: Suite, other: OperatorName | LimitName): readonly number[] {
  return ratios(suite, (round) => [rateOf(round, 'kindred'), rateOf(round, other)]);
}

/** A cost of ours as a multiple of another operator's, within each round. */
export function costRatiosTo(suite: Suite, other: OperatorName, of: (run: OperatorRun) => number): readonly number[] {
  const cost = (run: OperatorRun | undefined): number | undefined => (run === undefined ? undefined : of(run));
  return ratios(suite, ({ operators: runs }) => [cost(runs.kindred), cost(runs[other])]);
}

type Two = readonly [ours: number | undefined, theirs: number | undefined];

function ratios({ rounds }: Suite, of: (round: Round) => Two): readonly number[] {
  return rounds.flatMap((round) => {
    const [ours, theirs] = of(round);
    return ours === undefined || theirs === undefined ? [] : [ours / theirs];
  });
}

/** Statistics of a number of measurements. */
interface Summary {
  readonly count: number;
  readonly min: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * A quantile, by linear interpolation between two values (method R-7).
 *
 * @param q from 0 to 1
 * @returns NaN when there are no values
 */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)] ?? NaN;
  const above = sorted[Math.ceil(at)] ?? NaN;
  return below + (above - below) * (at - Math.floor(at));
}

/** Median, extremes and 99th percentile. */
export function summarize(values: readonly number[]): Summary {
  return {
    count: values.length,
    min: quantile(values, 0),
    median: quantile(values, 0.5),
    p99: quantile(values, 0.99),
    max: quantile(values, 1),
  };
}
