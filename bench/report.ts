import {
  busyEditsOf,
  editsOf,
  limitMeasures,
  limitRunsOf,
  limitsOf,
  measures,
  operatorsOf,
  quantile,
  rateOf,
  ratiosTo,
  runsOf,
  summarize,
  type Measure,
} from './measures';
import {
  labels,
  machineLine,
  operators,
  type BusyEdits,
  type LimitName,
  type OperatorName,
  type Results,
  type Suite,
} from './results';
import { targetsOf } from './targets';

/** A section of the report: a table with a title. */
interface Section {
  readonly title: string;
  /** How to read the rows, in a sentence or two. */
  readonly note?: string;
  readonly heading: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The results as text. */
export function report(results: Results): string {
  const parts = sections(results).map(({ title, note, heading, rows }) => {
    const text = table([title, ...heading.slice(1)], rows);
    return note === undefined ? text : `${text}\n${note}`;
  });
  return [preamble(results).join('\n'), ...parts].join('\n\n');
}

/** Lines of context that apply to all figures. */
export function preamble(results: Results): readonly string[] {
  const { machine, kubernetes, concurrency, peerWorkers, skipped } = results;
  const noisy = machine.load > machine.cpus;
  const ofBacklog = Math.ceil(concurrency / 2); // the operator reserves the rest for users' changes: see `runWorkers`
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

/** The measured code and the arguments of the run, if known. */
function origin({ code, args }: Results): readonly string[] {
  return [
    ...(code === undefined ? [] : [`code: ${code.commit}${code.dirty ? ' with changes that are not committed' : ''}`]),
    ...(args === undefined ? [] : [`arguments: ${args.length === 0 ? 'none' : args.join(' ')}`]),
  ];
}

/** All sections that have rows. */
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

/** All figures of one operator or bare loop. */
function runSection<Run>(
  suite: Suite,
  name: OperatorName | LimitName,
  runs: readonly Run[],
  figures: readonly Measure<Run>[],
): Section {
  const rows = figures.map((measure) => [measure.name, ...spreadOf(runs.map(measure.of))]);
  return { title: `${labels[name]}, ${String(suite.objects)} objects`, heading: ['', ...spread], rows };
}

/** Requests of each operator until convergence, by verb and code. */
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

const latencies = ['n', 'p50', 'p99', 'min', 'max'];

function latencyRow(name: string, values: readonly number[]): readonly (readonly string[])[] {
  if (values.length === 0) return [];
  const { count, median, p99, min, max } = summarize(values);
  return [[name, String(count), ...[median, p99, min, max].map(figure)]];
}

/** Edits while the operator is otherwise idle. */
function idle(results: Results): Section {
  const rows = operators.flatMap((name) => {
    const edits = editsOf(results, name);
    const row = (what: string, key: 'first' | 'later' | 'request'): readonly (readonly string[])[] =>
      latencyRow(
        `${labels[name]}: ${what}`,
        edits.flatMap((each) => each[key]),
      );
    return [
      ...row('first edit of an object', 'first'),
      ...row('later edit', 'later'),
      ...row('the edit itself, answered', 'request'),
    ];
  });
  return { title: 'idle: spec edit to child, ms, all rounds together', heading: ['', ...latencies], rows };
}

/**
 * Edits while the operator is busy, each round by itself: the server's speed differs more between rounds than
 * within one.
 */
function busy(results: Results): Section {
  const rows = operators.flatMap((name) => {
    const rounds = busyEditsOf(results, name);
    if (rounds.length === 0) return [];
    const row = (what: string, of: (edits: BusyEdits) => number): readonly string[] => [
      `${labels[name]}: ${what}`,
      ...spreadOf(rounds.map(of)),
    ];
    return [
      row('edits', ({ toChild }) => toChild.length),
      row('p50', ({ toChild }) => quantile(toChild, 0.5)),
      row('p99', ({ toChild }) => quantile(toChild, 0.99)),
      row('slowest', ({ toChild }) => quantile(toChild, 1)),
      row('the edit itself, answered, p50', ({ request }) => quantile(request, 0.5)),
      row('the edit itself, answered, p99', ({ request }) => quantile(request, 0.99)),
    ];
  });
  const title = `busy: spec edit to child while ${String(results.busy?.objects)} others are brought about, ms`;
  return { title, heading: ['', ...spread], rows };
}

/** Writing the platform as YAML. */
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

/** The headings of the cells of `spreadOf`. */
const spread = ['median', 'min', 'max', 'rounds'];

/** Median, minimum, maximum, and the value of each round. */
function spreadOf(values: readonly number[]): readonly string[] {
  const { median, min, max } = summarize(values);
  return [...[median, min, max].map(figure), values.map(figure).join(' ')];
}

/**
 * A table as text: the first column is aligned left, the others right.
 *
 * @throws RangeError when a row has another number of cells than the heading
 */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const odd = rows.find((row) => row.length !== heading.length);
  if (odd !== undefined) throw new RangeError(`${String(odd.length)} cells in a table of ${String(heading.length)}`);
  const widths = heading.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('   ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

/** A number for a table: whole numbers as they are, others rounded to about four significant digits. */
export function figure(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (Number.isInteger(value)) return String(value);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 0.1))));
  return value.toFixed(Math.min(digits, 3));
}
