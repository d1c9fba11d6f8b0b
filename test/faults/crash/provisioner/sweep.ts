import { PROVISIONER_LIFE, atPoints, formatCrashPoint, type CrashPoint } from '../crash-point';
import { differences, isStatus } from '../sweep';
import type { LifeResult } from '../run-life';
import { runClusterLife, type ClusterLifeContext } from './run-cluster-life';

/** How many lives a crash point gets to come up in: the number of statuses depends on the pace of the machines. */
const TRIES = 4;

/** What a sweep has found. */
export interface ClusterSweep {
  /** Lives that came out otherwise, and writes that did not come again. */
  readonly failures: readonly string[];
  /** Statuses that did not come again. */
  readonly missed: readonly string[];
}

/** Every write of the undisturbed life, before and after. */
export function everyPoint({ writes }: LifeResult): readonly CrashPoint[] {
  return writes.flatMap((write) =>
    (['before', 'after'] as const).map((moment) => ({ life: PROVISIONER_LIFE, moment, write })),
  );
}

/** Every write but statuses, one before, the next one after. */
export function alternatingPoints({ writes }: LifeResult): readonly CrashPoint[] {
  const lasting = writes.filter((write) => !isStatus(write));
  return lasting.map((write, i) => ({ life: PROVISIONER_LIFE, moment: i % 2 === 0 ? 'before' : 'after', write }));
}

/** Lives as often as it takes for a crash at each point, one in each stage of a life, and compares each with the undisturbed one. */
export async function sweepCluster(
  scene: ClusterLifeContext,
  calm: LifeResult,
  points: readonly CrashPoint[],
): Promise<ClusterSweep> {
  const failures: string[] = [];
  const hit = new Set<string>();
  const open = (): readonly CrashPoint[] => points.filter((point) => !hit.has(formatCrashPoint(point)));
  for (let tries = 0; tries < TRIES && failures.length === 0; tries += 1) {
    for (const crashesAt of onePointPerStage(open())) {
      try {
        const story = await runClusterLife(scene, atPoints(...crashesAt));
        story.crashes.forEach((crash) => hit.add(formatCrashPoint(crash)));
        failures.push(...differences(calm, story));
      } catch (error) {
        // What it left behind would be in the way of the next life.
        return { failures: [...failures, String(error)], missed: [] };
      }
    }
  }
  const missed = open();
  const lost = missed.filter(({ write }) => !isStatus(write));
  return {
    failures: [...failures, ...lost.map((point) => `${formatCrashPoint(point)}: this write did not come again`)],
    missed: missed.filter((point) => !lost.includes(point)).map(formatCrashPoint),
  };
}

/** Lives with one crash in each stage at most: what a crash leads to has settled when the next one comes. */
function onePointPerStage(points: readonly CrashPoint[]): readonly (readonly CrashPoint[])[] {
  const stages = [...new Set(points.map(({ write }) => write.stage))];
  const byStage = stages.map((stage) => points.filter(({ write }) => write.stage === stage));
  const most = Math.max(0, ...byStage.map(({ length }) => length));
  return Array.from({ length: most }, (_, i) => byStage.flatMap((stage) => stage[i] ?? []));
}
