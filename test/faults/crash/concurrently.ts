import { inParallel } from '../../e2e/operator/many-objects';

/** Does jobs, so many at once, in their order. @returns what came of each; a failure of one does not hold back the others */
export function concurrently<T, R>(
  limit: number,
  jobs: readonly T[],
  work: (job: T) => Promise<R>,
): Promise<readonly PromiseSettledResult<R>[]> {
  return inParallel(jobs, limit, async (job) => (await Promise.allSettled([work(job)]))[0]);
}
