import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  busyEditsOf,
  editsOf,
  limitRunsOf,
  limitsOf,
  operatorsOf,
  quantile,
  rateOf,
  runsOf,
  summarize,
} from './measures';
import { figure, preamble, sections } from './report';
import {
  labels,
  machineKind,
  operators,
  type LimitName,
  type LimitRun,
  type OperatorName,
  type OperatorRun,
  type Results,
  type Suite,
} from './results';

const begin = '<!-- results: written by `npm run bench -- --publish`, not by hand -->';
const end = '<!-- end of results -->';

/**
 * Writes the results into the documentation: the charts as files, the tables between the marks in its page.
 *
 * @param docs the directory of the page `benchmarks.md`
 * @throws Error when the page lacks the marks
 */
export async function publish(results: Results, docs: string): Promise<void> {
  const page = join(docs, 'benchmarks.md');
  const text = replaced(await readFile(page, 'utf8'), markdown(results), page);
  await mkdir(join(docs, 'benchmarks'), { recursive: true });
  for (const [name, picture] of charts(results)) await writeFile(join(docs, 'benchmarks', name), picture);
  await writeFile(page, text);
}

/** A page with new results between its marks. */
export function replaced(page: string, results: string, name: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${name}: put these two lines where the results go: ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${results}\n\n${page.slice(to)}`;
}

/** The results as Markdown: a table for each section. */
export function markdown(results: Results): string {
  const [, ...rest] = preamble(results);
  const head = [machineKind(results.machine), ...rest].map((line) => `- ${line}`).join('\n');
  const parts = sections(results).map(({ title, note, heading, rows }) => {
    const rule = heading.map((_, column) => (column === 0 ? '---' : '--:'));
    const lines = [heading, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
    return [`### ${capitalized(title)}\n`, ...(note === undefined ? [] : [`${note}\n`]), ...lines].join('\n');
  });
  return [head, ...parts].join('\n\n');
}

function capitalized(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}

/** The charts of these results, by file name. */
export function charts(results: Results): ReadonlyMap<string, string> {
  const compared = results.suites.filter((suite) => operatorsOf(suite).length > 1);
  const costs = compared.flatMap((suite) => [
    costPanel(
      'CPU seconds',
      suite,
      ({ converged }) => converged.cpuSeconds,
      (limit) => limit.cpuSeconds,
    ),
    costPanel(
      'peak memory, MiB',
      suite,
      ({ converged }) => converged.peakMiB,
      (limit) => limit.peakMiB,
    ),
    costPanel('writes after a restart', suite, ({ restarted }) => restarted.writeCount),
  ]);
  const others = String(results.busy?.objects);
  const latency = [
    idlePanel('first spec edit of an object to child when idle, ms: p50, to p99', results, 'first'),
    idlePanel('later spec edit to child when idle, ms: p50, to p99', results, 'later'),
    busyPanel(`spec edit to child while ${others} others are brought about, ms: p50`, results, 0.5),
    busyPanel(`spec edit to child while ${others} others are brought about, ms: p99`, results, 0.99),
  ].filter(({ bars }) => bars.length > 0);
  return new Map([
    ['throughput.svg', barChart('Objects a second, by operator', compared.map(ratePanel))],
    ['cost.svg', barChart('CPU time, memory and writes after a restart, by operator', costs)],
    ['latency.svg', barChart('Time from the edit of a spec to the change of its child, by operator', latency)],
  ]);
}

function ratePanel(suite: Suite): Panel {
  const bars = [...operatorsOf(suite), ...limitsOf(suite)].map((name) => {
    return bar(
      name,
      suite.rounds.flatMap((round) => rateOf(round, name) ?? []),
    );
  });
  return { title: `objects a second, ${String(suite.objects)} objects`, bars };
}

/** @param ofLimit the same cost of a bare loop; absent if only operators have it */
function costPanel(
  what: string,
  suite: Suite,
  of: (run: OperatorRun) => number,
  ofLimit?: (run: LimitRun) => number,
): Panel {
  const bars = operatorsOf(suite).map((name) => bar(name, runsOf(suite, name).map(of)));
  const bare = ofLimit && limitsOf(suite).map((name) => bar(name, limitRunsOf(suite, name).map(ofLimit)));
  return { title: `${what}, ${String(suite.objects)} objects`, bars: [...bars, ...(bare ?? [])] };
}

/** The line goes to the p99 of all rounds together, since one round has too few edits. */
function idlePanel(title: string, results: Results, key: 'first' | 'later'): Panel {
  const bars = operators.flatMap((name): readonly Bar[] => {
    const values = editsOf(results, name).flatMap((edits) => edits[key]);
    if (values.length === 0) return [];
    const { median: value, min: low, p99: high } = summarize(values);
    return [{ label: labels[name], value, low, high, own: name === 'kindred' }];
  });
  return { title, bars };
}

/** The line is the range of the rounds. */
function busyPanel(title: string, results: Results, q: number): Panel {
  const bars = operators.flatMap((name): readonly Bar[] => {
    const rounds = busyEditsOf(results, name).map(({ toChild }) => quantile(toChild, q));
    return rounds.length === 0 ? [] : [bar(name, rounds)];
  });
  return { title, bars };
}

/** The median of the rounds, and their range. */
function bar(name: OperatorName | LimitName, values: readonly number[]): Bar {
  const { median: value, min: low, max: high } = summarize(values);
  return { label: labels[name], value, low, high, own: name === 'kindred' };
}

/** One bar, with the range in which its value was seen. */
interface Bar {
  readonly label: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Whether it is our operator's; the others are drawn in grey. */
  readonly own: boolean;
}

/** Bars that share a scale. */
interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const width = 760;
const left = 220;
const right = 90;
const rowHeight = 26;
const barHeight = 16;
const panelHead = 40;

/** Readable on light and on dark: no background, and colours that follow the reader's scheme. */
const style = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #424a53; }
  .title { font-weight: 600; }
  .own { fill: #1a7f5a; }
  .other { fill: #a9b2bc; }
  .range { stroke: #24292f; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #c9d1d9; }
    .own { fill: #3fb984; }
    .other { fill: #59636e; }
    .range { stroke: #f0f6fc; }
  }
`;

/**
 * Horizontal bars as an SVG picture. The line across the end of a bar goes from its lowest to its highest value.
 *
 * @param description what it shows, in a sentence, for screen readers
 */
export function barChart(description: string, panels: readonly Panel[]): string {
  let y = 0;
  const drawn = panels.map((panel) => {
    const at = y;
    y += panelHead + panel.bars.length * rowHeight + 8;
    return drawPanel(panel, at);
  });
  const size = `width="${String(width)}" height="${String(y)}" viewBox="0 0 ${String(width)} ${String(y)}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escaped(description)}">`;
  return [head, `<style>${style}</style>`, ...drawn.flat(), '</svg>', ''].join('\n');
}

function drawPanel({ title, bars }: Panel, top: number): readonly string[] {
  const most = Math.max(...bars.flatMap(({ value, high }) => [value, high]), Number.MIN_VALUE);
  const scale = (value: number): number => (value / most) * (width - left - right);
  const rows = bars.flatMap((bar, i) => drawBar(bar, top + panelHead + i * rowHeight, scale));
  return [text({ x: 0, y: top + 22, anchor: 'start', kind: 'title' }, title), ...rows];
}

function drawBar(bar: Bar, y: number, scale: (value: number) => number): readonly string[] {
  const middle = y + barHeight / 2;
  const to = left + scale(Math.max(bar.value, bar.high)) + 8;
  const [from, until] = [left + scale(bar.low), left + scale(bar.high)];
  const place = `x="${String(left)}" y="${pixels(y)}" width="${pixels(scale(bar.value))}" height="${String(barHeight)}"`;
  const range = `x1="${pixels(from)}" x2="${pixels(until)}" y1="${pixels(middle)}" y2="${pixels(middle)}"`;
  return [
    text({ x: left - 10, y: middle + 4.5, anchor: 'end' }, bar.label),
    `<rect class="${bar.own ? 'own' : 'other'}" ${place} rx="2"/>`,
    `<line class="range" ${range}/>`,
    text({ x: to, y: middle + 4.5, anchor: 'start' }, figure(bar.value)),
  ];
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'end';
  readonly kind?: string;
}

function text({ x, y, anchor, kind }: Place, content: string): string {
  const of = kind === undefined ? '' : ` class="${kind}"`;
  return `<text${of} x="${pixels(x)}" y="${pixels(y)}" text-anchor="${anchor}">${escaped(content)}</text>`;
}

function pixels(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
