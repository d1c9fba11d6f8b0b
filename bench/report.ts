import { labels } from './labels';
import { busy, idle, synth } from './latency-sections';
import { machineLine } from './machine';
import { limitMeasures, limitRunsOf, limitsOf, measures, operatorsOf, rateOf, ratiosTo, runsOf } from './measures';
import type { Measure } from './measures';
import type { LimitName, OperatorName, Results, Suite } from './results';
import { spread, spreadOf } from './section';
import type { Section } from './section';
import { quantile, summarize } from './statistics';
import { figure, table } from './table';
import { targetsOf } from './targets';

/** The lines that every figure must be read with. */
export function preamble(results: Results): readonly string[] {
  const { machine, kubernetes, concurrency, peerWorkers, skipped } = results;
  const noisy = machine.load > machine.cpus;
  const ofBacklog = Math.ceil(concurrency / 2); // the operator keeps the rest for what users change: see `runWorkers`
  const counts = `concurrency ${String(concurrency)} (${String(ofBacklog)} of a backlog), ${String(peerWorkers)} workers in the twins`;
  return [
    machineLine(machine),
    `Kubernetes ${kubernetes}, ${counts}`,
    ...origin(results),
    ...(noisy
      ? ['noisy: others had the cores too, so times say little; ratios, memory, writes and CPU s say more']
      : []),
    ...skipped.map((line) => `skipped: ${line}`),
  ];
}

/** Which code was measured, and how the run was called, where that is known. */
function origin({ code, args }: Results): readonly string[] {
  return [
    ...(code === undefined ? [] : [`code: ${code.commit}${code.dirty ? ' with changes that are not committed' : ''}`]),
    ...(args === undefined ? [] : [`arguments: ${args.length === 0 ? 'none' : args.join(' ')}`]),
  ];
}

/** All that is told, part by part. */
export function sections(results: Results): readonly Section[] {
  const all = [
    ...results.suites.flatMap((suite) => [
      rates(suite),
      ...operatorsOf(suite).map((name) => runSection(suite, name, runsOf(suite, name), measures)),
      ...limitsOf(suite).map((name) => runSection(suite, name, limitRunsOf(suite, name), limitMeasures)),
    ]),
    ...results.suites.map(requests),
    idle(results),
    busy(results),
    synth(results),
    targets(results),
  ];
  return all.filter(({ rows }) => rows.length > 0);
}

/** The results as text. */
export function report(results: Results): string {
  const parts = sections(results).map(({ title, note, heading, rows }) => {
    const text = table([title, ...heading.slice(1)], rows);
    return note === undefined ? text : `${text}\n${note}`;
  });
  return [preamble(results).join('\n'), ...parts].join('\n\n');
}

function rates(suite: Suite): Section {
  const rate = [...operatorsOf(suite), ...limitsOf(suite)].map((name) => [
    labels[name],
    ...spreadOf(suite.rounds.flatMap((round) => rateOf(round, name) ?? [])),
  ]);
  const others = [...operatorsOf(suite), ...limitsOf(suite)].filter((name) => name !== 'kindred');
  const ratios = others.map((name) => [`Kindred / ${labels[name]}`, ...spreadOf(ratiosTo(suite, name))]);
  const measured = operatorsOf(suite).includes('kindred') ? ratios : [];
  const title = `objects/s, ${String(suite.objects)} objects`;
  return { title, heading: ['', ...spread], rows: [...rate, ...measured] };
}

/** Every figure of one operator or bare loop. */
function runSection<Run>(
  suite: Suite,
  name: OperatorName | LimitName,
  runs: readonly Run[],
  figures: readonly Measure<Run>[],
): Section {
  const rows = figures.map((measure) => [measure.name, ...spreadOf(runs.map(measure.of))]);
  return { title: `${labels[name]}, ${String(suite.objects)} objects`, heading: ['', ...spread], rows };
}

/** Requests of each operator while it converged, by verb and code. */
function requests(suite: Suite): Section {
  const names = operatorsOf(suite);
  const counts = names.map((name) => runsOf(suite, name).map(({ converged }) => converged.requests));
  const kinds = [...new Set(counts.flat().flatMap((each) => Object.keys(each)))].sort();
  const usual = (of: (typeof counts)[number], kind: string): number =>
    quantile(
      of.map((each) => each[kind] ?? 0),
      0.5,
    );
  const rows = kinds.map((kind) => [kind, ...counts.map((of) => figure(usual(of, kind)))]);
  const title = `requests while converging (median), ${String(suite.objects)} objects`;
  return { title, heading: ['', ...names.map((name) => labels[name])], rows };
}

const legend =
  'held, MISSED: so in every round. undecided: in some rounds and not in others, so these figures do not tell. What one round says ' +
  'stands or falls with that round.';

function targets(results: Results): Section {
  const rows = targetsOf(results).map(({ name, target, values, rounds, verdict }) => {
    const { median, min, max } = summarize(values);
    const told = rounds === 1 ? `${verdict} (one round)` : verdict;
    return [name, target, ...[median, min, max].map(figure), String(rounds), told];
  });
  return { title: 'targets', note: legend, heading: ['', 'target', 'median', 'min', 'max', 'rounds', ''], rows };
}
