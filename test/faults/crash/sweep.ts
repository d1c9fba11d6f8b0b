import { inParallel } from '../../../bench/many-objects';
import type { TestEnv } from '../../support/test-env';
import {
  atPoints,
  formatCrashPoint,
  formatCrashPoints,
  writeTarget,
  type CrashPoint,
  type WriteAddress,
} from './crash-point';
import type { Life } from './lives';
import { runLife, type LifeResult } from './run-life';

/** How many lives at once: each takes a process of its own, and mostly waits for the cluster. */
const AT_ONCE = 4;
/** How many lives a crash point gets to come up in. */
const TRIES = 6;
/** The same for a write that may or may not come: see `isNondeterministic`. */
const TRIES_NONDETERMINISTIC = 2;

/** What a sweep has found. */
interface SweepResult {
  /** Lives that came out otherwise, and writes that no life could be crashed at. */
  readonly failures: readonly string[];
  /** Writes by chance that did not come again. */
  readonly missed: readonly string[];
}

/** Lives through a life once for each write of the undisturbed one and each moment, with a crash there and nowhere else. */
export async function sweepEachWrite(env: TestEnv, life: Life, calm: LifeResult): Promise<SweepResult> {
  const points = calm.writes.flatMap((write) =>
    (['before', 'after'] as const).map((moment): CrashPoint => ({ life: life.name, moment, write })),
  );
  const results = await concurrently(AT_ONCE, points, async (point) => crashAt(env, life, calm, point));
  const failures: string[] = [];
  const missed: string[] = [];
  results.forEach((result, i) => {
    const point = points[i] as CrashPoint;
    if (result.status === 'rejected') failures.push(String(result.reason));
    else if (result.value !== undefined) failures.push(...result.value);
    else if (isNondeterministic(life, point.write)) missed.push(formatCrashPoint(point));
    else failures.push(`${formatCrashPoint(point)}: this write did not come again in ${String(TRIES)} lives`);
  });
  return { failures, missed };
}

/** @returns what came out otherwise; undefined when the operator never came to that write */
export async function crashAt(
  env: TestEnv,
  life: Life,
  calm: LifeResult,
  point: CrashPoint,
): Promise<readonly string[] | undefined> {
  const most = isNondeterministic(life, point.write) ? TRIES_NONDETERMINISTIC : TRIES;
  for (let tries = 0; tries < most; tries += 1) {
    const story = await runLife(env, life, atPoints(point));
    const found = differences(calm, story);
    if (story.crashes.length > 0 || found.length > 0) return found;
  }
  return undefined;
}

/** How a life with crashes came out otherwise than one without, a text for each stage; it says how to see it again. */
export function differences(calm: LifeResult, crashed: LifeResult): readonly string[] {
  return [...calm.snapshots].flatMap(([stage, snapshot]) => {
    try {
      expect(crashed.snapshots.get(stage)).toEqual(snapshot);
      return [];
    } catch (error) {
      return [
        `after the stage ${stage}, ${describeCrashes(crashed)}\n${error instanceof Error ? error.message : String(error)}`,
      ];
    }
  });
}

function describeCrashes({ crashes }: LifeResult): string {
  const points = crashes.map(formatCrashPoint);
  if (points.length === 1) return `crashed at KINDRED_CRASH_AT='${points[0] ?? ''}':`;
  return `crashed at\n${formatCrashPoints(crashes)}\n(one alone: KINDRED_CRASH_AT='<one of them>')`;
}

/** A status is written when something new was observed: how often depends on the pace of the cluster. */
export function isStatus({ resource }: WriteAddress): boolean {
  return resource.includes('/status');
}

/** Whether a write need not come again in another life: a later status of a stage, or what the garbage collector may have done before. */
function isNondeterministic({ stages }: Life, write: WriteAddress): boolean {
  const stage = stages.find(({ name }) => name === write.stage);
  return stage?.collected === true || (isStatus(write) && write.occurrence > 1);
}

/**
 * The writes of an undisturbed life at which a life with crashes everywhere was not crashed, before and after, as often as something new was
 * written. Of statuses one in the whole life will do: by the time that another operator looks, it may stand as it should.
 */
export function uncovered(life: Life, calm: LifeResult, crashed: LifeResult): readonly string[] {
  const wanted = counts(calm.writes.filter((write) => !isNondeterministic(life, write)));
  return (['before', 'after'] as const).flatMap((moment) => {
    const hit = counts(crashed.crashes.filter((crash) => crash.moment === moment).map(({ write }) => write));
    return [...wanted].flatMap(([target, times]) => {
      const enough = target === ANY_STATUS ? 1 : times;
      const came = hit.get(target) ?? 0;
      return came >= enough ? [] : [`${moment} ${target}: ${String(came)} of ${String(enough)} crashes`];
    });
  });
}

const ANY_STATUS = 'a status';

/** How many different writes there are, by what they are about. */
function counts(writes: readonly WriteAddress[]): ReadonlyMap<string, number> {
  const byTarget = new Map<string, Set<string | undefined>>();
  for (const write of writes) {
    const target = isStatus(write) ? ANY_STATUS : writeTarget(write);
    byTarget.set(target, (byTarget.get(target) ?? new Set()).add(write.content));
  }
  return new Map([...byTarget].map(([target, contents]) => [target, contents.size]));
}

/** Does jobs, so many at once, in their order. @returns what came of each; a failure of one does not hold back the others */
export function concurrently<T, R>(
  limit: number,
  jobs: readonly T[],
  work: (job: T) => Promise<R>,
): Promise<readonly PromiseSettledResult<R>[]> {
  return inParallel(jobs, limit, async (job) => (await Promise.allSettled([work(job)]))[0]);
}
