import { labels } from './labels';
import { machineLine } from './machine';
import { limitsOf, measures, operatorsOf, rateOf, ratiosTo, runsOf } from './measures';
import { operators } from './results';
import type { Edits, Results, Suite } from './results';
import { quantile, summarize } from './statistics';
import { figure, table } from './table';
import { targetsOf } from './targets';

/** A part of the report: what it is about, and rows under a heading. */
export interface Section {
  readonly title: string;
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The lines that every figure must be read with. */
export function preamble({ machine, kubernetes, concurrency, peerWorkers, skipped }: Results): readonly string[] {
  const busy = machine.load > machine.cpus;
  const counts = `concurrency ${String(concurrency)}, ${String(peerWorkers)} workers in the twins`;
  return [
    machineLine(machine),
    `Kubernetes ${kubernetes}, ${counts}`,
    ...(busy
      ? ['noisy: others had the cores too, so times say little; ratios, memory, writes and CPU s say more']
      : []),
    ...skipped.map((line) => `skipped: ${line}`),
  ];
}

/** All that is told, part by part. */
export function sections(results: Results): readonly Section[] {
  const all = [
    ...results.suites.flatMap((suite) => [
      rates(suite),
      ...operatorsOf(suite).map((name) => operatorSection(suite, name)),
    ]),
    ...results.suites.map(requests),
    edits(results),
    busy(results),
    synth(results),
    targets(results),
  ];
  return all.filter(({ rows }) => rows.length > 0);
}

/** The results as text. */
export function report(results: Results): string {
  const parts = sections(results).map(({ title, heading, rows }) => table([title, ...heading.slice(1)], rows));
  return [preamble(results).join('\n'), ...parts].join('\n\n');
}

const spread = ['median', 'min', 'max', 'rounds'];

function spreadOf(values: readonly number[]): readonly string[] {
  const { median, min, max } = summarize(values);
  return [...[median, min, max].map(figure), values.map(figure).join(' ')];
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

function operatorSection(suite: Suite, name: (typeof operators)[number]): Section {
  const runs = runsOf(suite, name);
  const rows = measures.map((measure) => [measure.name, ...spreadOf(runs.map(measure.of))]);
  return { title: `${labels[name]}, ${String(suite.objects)} objects`, heading: ['', ...spread], rows };
}

/** Requests of each operator while it converged, by verb and code. */
function requests(suite: Suite): Section {
  const names = operatorsOf(suite);
  const counts = new Map(names.map((name) => [name, runsOf(suite, name).map(({ converged }) => converged.requests)]));
  const kinds = [...new Set([...counts.values()].flat().flatMap((each) => Object.keys(each)))].sort();
  const rows = kinds.map((kind) => [
    kind,
    ...names.map((name) =>
      figure(
        quantile(
          (counts.get(name) ?? []).map((each) => each[kind] ?? 0),
          0.5,
        ),
      ),
    ),
  ]);
  const title = `requests while converging (median), ${String(suite.objects)} objects`;
  return { title, heading: ['', ...names.map((name) => labels[name])], rows };
}

const latencies = ['n', 'p50', 'p99', 'min', 'max'];

function latencyRow(name: string, values: readonly number[]): readonly (readonly string[])[] {
  if (values.length === 0) return [];
  const { count, median, p99, min, max } = summarize(values);
  return [[name, String(count), ...[median, p99, min, max].map(figure)]];
}

function edits({ suites }: Results): Section {
  const rows = operators.flatMap((name) => {
    const of = (pick: (edits: Edits) => readonly number[]): readonly number[] =>
      suites.flatMap((suite) => runsOf(suite, name).flatMap((run) => (run.edits === undefined ? [] : pick(run.edits))));
    return [
      ...latencyRow(
        `${labels[name]}: first edit of an object`,
        of(({ first }) => first),
      ),
      ...latencyRow(
        `${labels[name]}: later edit`,
        of(({ later }) => later),
      ),
      ...latencyRow(
        `${labels[name]}: the edit itself, answered`,
        of(({ request }) => request),
      ),
    ];
  });
  return { title: 'idle: spec edit to child, ms', heading: ['', ...latencies], rows };
}

function busy(results: Results): Section {
  const rows = operators.flatMap((name) => {
    const measured = results.busy[name];
    if (measured === undefined) return [];
    return [
      ...latencyRow(`${labels[name]}, ${String(measured.objects)} others`, measured.toChild),
      ...latencyRow(`${labels[name]}: the edit itself, answered`, measured.request),
    ];
  });
  return { title: 'busy: spec edit to child, ms', heading: ['', ...latencies], rows };
}

function synth({ synth: measured }: Results): Section {
  const title = 'the platform as YAML, ms';
  const heading = ['', ...latencies];
  if (measured === undefined) return { title, heading, rows: [] };
  const rows = [
    ...latencyRow('npm run synth', measured.npm),
    ...latencyRow('kindred synth (bundled)', measured.bundle),
    ...latencyRow('kustomize build of the same output', measured.kustomize),
    ...latencyRow('start of Node', measured.node),
  ];
  return { title, heading, rows };
}

function targets(results: Results): Section {
  const rows = targetsOf(results).map(({ name, target, measured, held }) => [
    ...[name, target, figure(measured)],
    held ? 'held' : 'MISSED',
  ]);
  return { title: 'targets', heading: ['', 'target', 'measured', ''], rows };
}
