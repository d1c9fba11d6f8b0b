import { pointsText, pointText, targetOf } from './crash-point';
import type { WriteAddress } from './crash-point';
import type { Life } from './life';
import type { LifeStory } from './live-through';

/** How a life with crashes came out otherwise than one without, a text for each stage; it says how to see it again. */
export function differences(calm: LifeStory, crashed: LifeStory): readonly string[] {
  return [...calm.snapshots].flatMap(([stage, snapshot]) => {
    try {
      expect(crashed.snapshots.get(stage)).toEqual(snapshot);
      return [];
    } catch (error) {
      return [
        `after the stage ${stage}, ${causes(crashed)}\n${error instanceof Error ? error.message : String(error)}`,
      ];
    }
  });
}

function causes({ crashes }: LifeStory): string {
  const points = crashes.map(pointText);
  if (points.length === 1) return `crashed at KINDRED_CRASH_AT='${points[0] ?? ''}':`;
  return `crashed at\n${pointsText(crashes)}\n(one alone: KINDRED_CRASH_AT='<one of them>')`;
}

/** A status is written when something new was observed: how often depends on the pace of the cluster. */
export function isStatus({ resource }: WriteAddress): boolean {
  return resource.includes('/status');
}

/** Whether a write need not come again in another life: a later status of a stage, or what the garbage collector may have done before. */
export function isByChance({ stages }: Life, write: WriteAddress): boolean {
  const stage = stages.find(({ name }) => name === write.stage);
  return stage?.collected === true || (isStatus(write) && write.occurrence > 1);
}

/**
 * The writes of an undisturbed life at which a life with crashes everywhere was not crashed, before and after, as often as something new was
 * written. Of statuses one in the whole life will do: by the time that another operator looks, it may stand as it should.
 */
export function uncovered(life: Life, calm: LifeStory, crashed: LifeStory): readonly string[] {
  const wanted = counts(calm.writes.filter((write) => !isByChance(life, write)));
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
    const target = isStatus(write) ? ANY_STATUS : targetOf(write);
    byTarget.set(target, (byTarget.get(target) ?? new Set()).add(write.content));
  }
  return new Map([...byTarget].map(([target, contents]) => [target, contents.size]));
}
