import type { Bench } from '../../e2e/operator/support/bench';
import { at } from './choices';
import { concurrently } from './concurrently';
import { pointText } from './crash-point';
import type { CrashPoint } from './crash-point';
import { differences, isByChance } from './judge';
import type { Life } from './life';
import { liveThrough } from './live-through';
import type { LifeStory } from './live-through';

/** How many lives at once: each takes a process of its own, and mostly waits for the cluster. */
const AT_ONCE = 4;
/** How many lives a crash point gets to come up in. */
const TRIES = 6;
/** The same for a write that may or may not come: see `isByChance`. */
const TRIES_BY_CHANCE = 2;

/** What a sweep has found. */
export interface SweepResult {
  /** Lives that came out otherwise, and writes that no life could be crashed at. */
  readonly failures: readonly string[];
  /** Writes by chance that did not come again. */
  readonly missed: readonly string[];
}

/** Lives through a life once for each write of the undisturbed one and each moment, with a crash there and nowhere else. */
export async function sweepEachWrite(bench: Bench, life: Life, calm: LifeStory): Promise<SweepResult> {
  const points = calm.writes.flatMap((write) =>
    (['before', 'after'] as const).map((moment): CrashPoint => ({ life: life.name, moment, write })),
  );
  const results = await concurrently(AT_ONCE, points, async (point) => crashAt(bench, life, calm, point));
  const failures: string[] = [];
  const missed: string[] = [];
  results.forEach((result, i) => {
    const point = points[i] as CrashPoint;
    if (result.status === 'rejected') failures.push(String(result.reason));
    else if (result.value !== undefined) failures.push(...result.value);
    else if (isByChance(life, point.write)) missed.push(pointText(point));
    else failures.push(`${pointText(point)}: this write did not come again in ${String(TRIES)} lives`);
  });
  return { failures, missed };
}

/** @returns what came out otherwise; undefined when the operator never came to that write */
export async function crashAt(
  bench: Bench,
  life: Life,
  calm: LifeStory,
  point: CrashPoint,
): Promise<readonly string[] | undefined> {
  const most = isByChance(life, point.write) ? TRIES_BY_CHANCE : TRIES;
  for (let tries = 0; tries < most; tries += 1) {
    const story = await liveThrough(bench, life, at(point));
    const found = differences(calm, story);
    if (story.crashes.length > 0 || found.length > 0) return found;
  }
  return undefined;
}
