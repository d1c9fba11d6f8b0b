import { machineLine } from './machine';
import type { Edits, OperatorResults, Round } from './operator-results';
import { summarize } from './statistics';
import { figure, table } from './table';

/** A row of the first table: one value a round. */
type Measure = readonly [name: string, of: (round: Round) => number];

const measures: readonly Measure[] = [
  ['converge: objects/s', ({ converged }) => converged.objectsPerSecond],
  ['bare requests: objects/s', bareRate],
  ['converge / bare requests', ratio],
  ['bare requests after / before', ({ limits: [before, after] }) => after.objectsPerSecond / before.objectsPerSecond],
  ['converge: writes/object', ({ converged }) => converged.writesPerObject],
  ['converge: events', ({ converged }) => converged.events],
  ['converge: CPU s', ({ converged }) => converged.cpuSeconds],
  ['converge: peak RSS MiB', ({ converged }) => converged.peakMiB],
  ['converge: start to first write ms', ({ converged }) => converged.firstWriteMs],
  ['converge: start to last write ms', ({ converged }) => converged.convergedMs],
  ['restart: writes', ({ restarted }) => restarted.writeCount],
  ['restart: events', ({ restarted }) => restarted.events],
  ['restart: start to reconciling ms', ({ restarted }) => restarted.reconcilingMs],
  ['restart: CPU s', ({ restarted }) => restarted.cpuSeconds],
  ['restart: peak RSS MiB', ({ restarted }) => restarted.peakMiB],
];

const editRows: readonly (readonly [name: string, of: (edits: Edits) => readonly number[]])[] = [
  ['first edit of an object to its child', ({ first }) => first],
  ['later edit to the child', ({ later }) => later],
  ['the edit itself, answered', ({ request }) => request],
];

/** What the bare requests of a round reached: as many objects as both had, in the time that both took. */
function bareRate({ limits: [before, after] }: Round): number {
  return 2 / (1 / before.objectsPerSecond + 1 / after.objectsPerSecond);
}

/** The operator's objects a second as a share of what the bare requests around it reached. */
export function ratio(round: Round): number {
  return round.converged.objectsPerSecond / bareRate(round);
}

/** The results as text: what it was measured on, a table over the rounds, and one over the edits of all rounds. */
export function operatorReport(results: OperatorResults): string {
  const { machine, kubernetes, objects, concurrency, rounds } = results;
  const perRound = measures.map(([name, of]) => {
    const values = rounds.map(of);
    const { median, min, max } = summarize(values);
    return [name, ...[median, min, max].map(figure), values.map(figure).join(' ')];
  });
  const edits = editRows.map(([name, of]) => {
    const { count, median, p99, min, max } = summarize(rounds.flatMap((round) => of(round.edits)));
    return [name, String(count), ...[median, p99, min, max].map(figure)];
  });
  return [
    machineLine(machine),
    `Kubernetes ${kubernetes}, ${String(objects)} HelloApps, concurrency ${String(concurrency)}, ${String(rounds.length)} rounds`,
    '',
    table(['', 'median', 'min', 'max', 'rounds'], perRound),
    '',
    table(['spec edit, ms', 'n', 'p50', 'p99', 'min', 'max'], edits),
    '',
    table(['writes', 'median', 'min', 'max'], writeRows(rounds)),
  ].join('\n');
}

/** How often each kind of write was made while converging. */
function writeRows(rounds: readonly Round[]): readonly (readonly string[])[] {
  const names = [...new Set(rounds.flatMap(({ converged }) => Object.keys(converged.writes)))].sort();
  return names.map((name) => {
    const { median, min, max } = summarize(rounds.map(({ converged }) => converged.writes[name] ?? 0));
    return [name, ...[median, min, max].map(figure)];
  });
}
