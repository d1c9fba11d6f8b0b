import { targetOf } from './crash-point';
import type { CrashPoint, Moment, WriteAddress } from './crash-point';

/** Says of each write, as it comes, whether the operator is stopped there. */
export type Choice = (write: WriteAddress) => Moment | undefined;

/** A life without a crash. */
export const nowhere: Choice = () => undefined;

/** A crash at each of these points, once. */
export function at(...points: readonly CrashPoint[]): Choice {
  const open = new Set(points);
  return (write) => {
    const here = [...open].find((point) => {
      return targetOf(point.write) === targetOf(write) && point.write.occurrence === write.occurrence;
    });
    if (here !== undefined) open.delete(here);
    return here?.moment;
  };
}

/**
 * A crash before each write, and another one after it, when the next operator has come to it. A write that is merely repeated, because its
 * effect cannot be told from what stands, passes: nobody would ever come further.
 */
export function everywhere(): Choice {
  const heldBack = new Set<string>();
  const done = new Set<string>();
  return (write) => {
    const key = `${targetOf(write)} ${write.content ?? ''}`;
    if (done.has(key)) return undefined;
    const moment = heldBack.has(key) ? 'after' : 'before';
    (moment === 'after' ? done : heldBack).add(key);
    return moment;
  };
}
