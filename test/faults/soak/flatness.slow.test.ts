import { flatness, median, theilSen, windowMinima, type Point } from './flatness';

const bounds = { perHour: 20, growth: 0.05 };
const runs = Array.from({ length: 40 }, (_, run) => run + 1);

/**
 * Half an hour of what looks like the RSS of a Node.js process, sampled every five seconds: a warm-up, the saw teeth of a collected heap,
 * noise that remembers itself, a peak now and then.
 */
function rss(seed: number, more: (hours: number) => number = () => 0): readonly Point[] {
  const random = randomOf(seed);
  let wander = 0;
  return Array.from({ length: 360 }, (_, i) => {
    const hours = (i * 5) / 3600;
    wander = 0.9 * wander + (random() - 0.5) * 2;
    const warmUp = -15 * Math.exp(-hours * 20);
    const peak = random() < 0.02 ? 40 : 0;
    return { hours, value: 110 + warmUp + wander + (i % 12) * 0.5 + peak + more(hours) };
  });
}

/** A linear congruential generator, so that a failure comes again. */
function randomOf(seed: number): () => number {
  let state = seed * 7919;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
}

test('noise, peaks and a warm-up are flat', () => {
  expect(runs.flatMap((run) => flatness(rss(run), bounds).problems)).toEqual([]);
});

test('a leak of one and a half times the bound is found every time', () => {
  const found = runs.map((run) =>
    flatness(
      rss(run, (hours) => hours * 30),
      bounds,
    ),
  );
  expect(found.filter(({ problems }) => problems.length === 0)).toEqual([]);
  // What 20 minutes of such noise leave unsure.
  expect(Math.max(...found.map(({ perHour }) => Math.abs(perHour - 30)))).toBeLessThan(15);
  expect(found[0]?.problems[0]).toMatch(/^rises by \d+\.\d\d an hour, more than 20\.00$/);
});

test('a leak of a quarter of the bound is let pass', () => {
  const slow = (hours: number): number => hours * 5;
  expect(runs.flatMap((run) => flatness(rss(run, slow), bounds).problems)).toEqual([]);
});

test('a step in the last third is found by the medians', () => {
  const step = (hours: number): number => (hours > 0.36 ? 10 : 0);
  const found = runs.map((run) => flatness(rss(run, step), { ...bounds, perHour: Infinity }).problems);
  expect(found.filter((problems) => problems.length !== 1)).toEqual([]);
  expect(found[0]?.[0]).toContain("above the second third's");
});

test('what falls is flat, and so is what stands still at 0', () => {
  expect(
    flatness(
      rss(1, (hours) => hours * -50),
      bounds,
    ).problems,
  ).toEqual([]);
  const still = Array.from({ length: 30 }, (_, i) => ({ hours: i, value: 0 }));
  expect(flatness(still, { perHour: 0, growth: 0 })).toEqual({ median: 0, perHour: 0, growth: 0, problems: [] });
});

/** A heap that grows by garbage until it is collected, every 110 s, and keeps a little more each time. */
function heap(seed: number, perHour: number): readonly Point[] {
  const random = randomOf(seed);
  const phase = random() * 110;
  return Array.from({ length: 360 }, (_, i) => {
    const garbage = ((i * 5 + phase) % 110) * (0.1 + 0.02 * random());
    const hours = (i * 5) / 3600;
    return { hours, value: 45 - 5 * Math.exp(-hours * 20) + garbage + 0.3 * random() + perHour * hours };
  });
}
const floorBounds = { perHour: 3, growth: 0.05 };
const floorOf = (points: readonly Point[]): readonly Point[] => windowMinima(points, 0.05);

test('the floor of a heap shows a leak that its garbage hides', () => {
  expect(floorOf(heap(1, 0))).toHaveLength(10);
  expect(runs.flatMap((run) => flatness(floorOf(heap(run, 0)), floorBounds).problems)).toEqual([]);
  const found = runs.map((run) => flatness(floorOf(heap(run, 6)), floorBounds).problems);
  expect(found.filter(({ length }) => length === 0)).toEqual([]);
});

test('a floor is the lowest of its window, and the last window counts when it is whole', () => {
  const points = [5, 3, 4, 9, 8, 7, 2].map((value, hours) => ({ hours, value }));
  expect(windowMinima(points, 3)).toEqual([
    { hours: 1.5, value: 3 },
    { hours: 4.5, value: 7 },
  ]);
  expect(windowMinima(points, 4)).toHaveLength(1);
});

test('a handful of samples is not judged', () => {
  expect(() => flatness(rss(1).slice(0, 8), bounds)).toThrow('8 samples are too few to judge');
});

test('the slope of a line is its slope, whatever a quarter of the points say', () => {
  const line = Array.from({ length: 40 }, (_, i) => ({ hours: i, value: i % 4 === 0 ? 1000 : 3 * i }));
  expect(theilSen(line)).toBeCloseTo(3, 1);
  expect(theilSen([{ hours: 1, value: 1 }])).toBeNaN();
});

test('the median is the middle, or between the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([])).toBeNaN();
});
