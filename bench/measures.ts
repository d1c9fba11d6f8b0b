import { limits, operators } from './results';
import type { LimitName, OperatorName, OperatorRun, Round, Suite } from './results';

/** A figure of one operator's run. */
export interface Measure {
  readonly name: string;
  readonly of: (run: OperatorRun) => number;
}

/** Every figure that is told of an operator's run. */
export const measures: readonly Measure[] = [
  { name: 'objects/s', of: ({ converged }) => converged.objectsPerSecond },
  { name: 'writes/object', of: ({ converged }) => converged.writesPerObject },
  { name: 'events', of: ({ converged }) => converged.events },
  { name: 'CPU s', of: ({ converged }) => converged.cpuSeconds },
  { name: 'peak RSS MiB', of: ({ converged }) => converged.peakMiB },
  { name: 'start to first write ms', of: ({ converged }) => converged.firstWriteMs },
  { name: 'start to last write ms', of: ({ converged }) => converged.convergedMs },
  { name: 'restart: writes', of: ({ restarted }) => restarted.writeCount },
  { name: 'restart: start to reconciling ms', of: ({ restarted }) => restarted.reconcilingMs },
  { name: 'restart: CPU s', of: ({ restarted }) => restarted.cpuSeconds },
  { name: 'restart: peak RSS MiB', of: ({ restarted }) => restarted.peakMiB },
];

/** What an operator did, round by round; rounds without it are left out. */
export function runsOf({ rounds }: Suite, name: OperatorName): readonly OperatorRun[] {
  return rounds.flatMap(({ operators: { [name]: run } }) => (run === undefined ? [] : [run]));
}

/** The operators that a suite has figures of. */
export function operatorsOf(suite: Suite): readonly OperatorName[] {
  return operators.filter((name) => runsOf(suite, name).length > 0);
}

/** The bare loops that a suite has figures of. */
export function limitsOf({ rounds }: Suite): readonly LimitName[] {
  return limits.filter((name) => rounds.some((round) => round.limits[name] !== undefined));
}

/** Objects a second of an operator or a bare loop in one round; undefined where it was not measured. */
export function rateOf({ operators: runs, limits: rates }: Round, name: OperatorName | LimitName): number | undefined {
  return name === 'same' || name === 'apply' ? rates[name] : runs[name]?.converged.objectsPerSecond;
}

/** Our objects a second as a multiple of another's, taken within each round: what slows the machine for a while slows both. */
export function ratiosTo({ rounds }: Suite, other: OperatorName | LimitName): readonly number[] {
  return rounds.flatMap((round) => {
    const [ours, theirs] = [rateOf(round, 'kindred'), rateOf(round, other)];
    return ours === undefined || theirs === undefined ? [] : [ours / theirs];
  });
}
