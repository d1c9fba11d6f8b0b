import { figure } from './table';

/** One bar, with the range in which its value was seen. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Whether it is what the chart is about; the others are drawn in grey. */
  readonly own: boolean;
}

/** Bars that share a scale. */
export interface Panel {
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
 * @param description what it shows, in a sentence, for those who do not see it
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
