import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Metrics, type OperatorProcess } from '../../../testing';
import { rssMiB } from '../support/traffic';

/** One measured value and when it was measured. */
export interface Point {
  /** Hours since the first. */
  readonly hours: number;
  readonly value: number;
}

/** How much a series may rise and still be called flat. */
export interface FlatBounds {
  /** Of the robust slope after the warm-up, per hour, in the series' own unit. */
  readonly perHour: number;
  /** Of the last third's median over the second third's, as a share of the latter: 0.05 is 5 %. */
  readonly growth: number;
}

/** What a series did after its warm-up. */
export interface Flatness {
  /** Of the second third. */
  readonly median: number;
  /** The robust slope. */
  readonly perHour: number;
  /** The last third's median over the second third's, as a share of the latter. */
  readonly growth: number;
  /** Why it is not flat; empty when it is. */
  readonly problems: readonly string[];
}

/**
 * Judges whether a series stays where it is once it is warm, which is after the first third of the time: caches fill, pools open, V8 grows its
 * heap to what the work needs.
 *
 * Two looks, since each is blind where the other sees: the slope of Theil and Sen over the last two thirds finds a leak that drips, however
 * noisy the series (up to 29 % of the points may be anything); the thirds' medians find a step that is too late to bend the slope. A
 * single peak moves neither. Falling is flat.
 *
 * @throws RangeError with fewer than 9 points: a third of them would be no median to speak of
 */
export function flatness(points: readonly Point[], bounds: FlatBounds): Flatness {
  if (points.length < 9) throw new RangeError(`${String(points.length)} samples are too few to judge`);
  const thirdOf = ({ hours }: Point): number => {
    const first = points[0]?.hours ?? 0;
    const span = (points.at(-1)?.hours ?? 0) - first;
    return Math.min(2, Math.floor((3 * (hours - first)) / span));
  };
  const warm = points.filter((point) => thirdOf(point) > 0);
  const middle = median(warm.filter((point) => thirdOf(point) === 1).map(({ value }) => value));
  const last = median(warm.filter((point) => thirdOf(point) === 2).map(({ value }) => value));
  const perHour = theilSen(warm);
  const growth = last === middle ? 0 : (last - middle) / middle;
  const problems = [
    ...(perHour > bounds.perHour ? [`rises by ${text(perHour)} an hour, more than ${text(bounds.perHour)}`] : []),
    ...(growth > bounds.growth
      ? [`its last third's median ${text(last)} is ${text(growth * 100)} % above the second third's ${text(middle)}`]
      : []),
  ];
  return { median: middle, perHour, growth, problems };
}

/**
 * The lowest value of each window of time, at the window's middle. Of a heap that is collected now and then, this is what the collection leaves:
 * garbage that waits for it hides a leak of its own size.
 *
 * @param hours the length of a window; the last one is left out when it has not come to its end
 */
export function windowMinima(points: readonly Point[], hours: number): readonly Point[] {
  const windows = new Map<number, number>();
  for (const point of points) {
    const window = Math.floor(point.hours / hours);
    windows.set(window, Math.min(point.value, windows.get(window) ?? Infinity));
  }
  const end = points.at(-1)?.hours ?? 0;
  // It has come to its end, too, when the next sample would lie beyond.
  const slack = (end - (points[0]?.hours ?? 0)) / Math.max(1, points.length - 1);
  return [...windows]
    .filter(([window]) => (window + 1) * hours <= end + 1.5 * slack)
    .map(([window, value]) => ({ hours: (window + 0.5) * hours, value }));
}

/**
 * The median of the slopes between all pairs of points (H. Theil, 1950; P. K. Sen, 1968).
 *
 * @returns NaN when no two points differ in time
 */
export function theilSen(points: readonly Point[]): number {
  const slopes: number[] = [];
  for (const [i, a] of points.entries()) {
    for (const b of points.slice(i + 1)) {
      if (a.hours !== b.hours) slopes.push((b.value - a.value) / (b.hours - a.hours));
    }
  }
  return median(slopes);
}

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? NaN) + (sorted[Math.floor(half)] ?? NaN)) / 2;
}

function text(value: number): string {
  return value.toFixed(2);
}

const MIB = 1024 * 1024;

/** What an operator's process holds at one moment. */
export interface Sample {
  /** Seconds since the first sample. */
  readonly seconds: number;
  /** VmRSS of /proc/<pid>/status. */
  readonly rssMiB: number;
  /** V8's heap in use, garbage included. */
  readonly heapMiB: number;
  /** Memory of buffers, outside of V8's heap. */
  readonly externalMiB: number;
  /** Open file descriptors. */
  readonly fds: number;
  /** Those among them that are sockets. */
  readonly sockets: number;
  /** What keeps Node's event loop busy: timers, sockets, servers. */
  readonly resources: number;
  /** The 99th percentile of the event loop's lag since the sample before, in milliseconds. */
  readonly lagMs: number;
  /** CPU time used so far, in seconds. */
  readonly cpuSeconds: number;
  /** Time series that `/metrics` shows, those left out that tell of Node itself, which come and go. */
  readonly series: number;
  /** Custom resources in the operator's caches. */
  readonly objects: number;
  /** Reconciles so far. */
  readonly reconciles: number;
}

/** Takes samples of one operator. */
export class Sampler {
  readonly samples: Sample[] = [];
  /** What `/metrics` said last, word by word. */
  text = '';
  private began: number | undefined;

  constructor(private readonly operator: OperatorProcess) {}

  async take(): Promise<Sample> {
    this.began ??= Date.now();
    const seconds = (Date.now() - this.began) / 1000;
    const { port } = await this.operator.log.line('serving /healthz, /readyz and /metrics');
    this.text = await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text();
    const sample = { seconds, ...fromMetrics(this.text), ...(await fromProc(this.operator.pid)) };
    this.samples.push(sample);
    return sample;
  }
}

/** Comma-separated, a header first: what a spreadsheet reads. */
export function csv(samples: readonly Sample[]): string {
  const names = Object.keys(samples[0] ?? {}) as (keyof Sample)[];
  const lines = samples.map((sample) => names.map((name) => String(Number(sample[name].toFixed(3)))).join(','));
  return [names.join(','), ...lines, ''].join('\n');
}

function fromMetrics(text: string): Omit<Sample, 'seconds' | 'rssMiB' | 'fds' | 'sockets'> {
  const metrics = Metrics.parse(text);
  const ofNode = /^(#|nodejs_|process_|$)/;
  return {
    heapMiB: metrics.sum('nodejs_heap_size_used_bytes') / MIB,
    externalMiB: metrics.sum('nodejs_external_memory_bytes') / MIB,
    resources: metrics.sum('nodejs_active_resources_total'),
    lagMs: metrics.sum('nodejs_eventloop_lag_p99_seconds') * 1000,
    cpuSeconds: metrics.sum('process_cpu_seconds_total'),
    series: text.split('\n').filter((line) => !ofNode.test(line)).length,
    objects: metrics.sum('kindred_objects'),
    reconciles: metrics.sum('controller_runtime_reconcile_total'),
  };
}

/** Source of the fields: proc(5). */
async function fromProc(pid: number): Promise<Pick<Sample, 'rssMiB' | 'fds' | 'sockets'>> {
  const folder = `/proc/${String(pid)}`;
  const fds = await readdir(join(folder, 'fd'));
  // One that was closed meanwhile is none any more.
  const links = await Promise.all(fds.map((fd) => readlink(join(folder, 'fd', fd)).catch(() => undefined)));
  const open = links.filter((link) => link !== undefined);
  return {
    rssMiB: rssMiB(pid),
    fds: open.length,
    sockets: open.filter((link) => link.startsWith('socket:')).length,
  };
}
