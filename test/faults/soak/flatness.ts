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
export function floors(points: readonly Point[], hours: number): readonly Point[] {
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
