import type { TestEnv } from '../../support/test-env';
import { atEveryWrite } from './crash-point';
import { concurrently, differences, uncovered } from './sweep';
import type { Life } from './lives';
import { runLife, type LifeResult } from './run-life';

interface Stories {
  readonly calm: LifeResult;
  readonly crashed: LifeResult;
}

/**
 * Tests that lives end as they do undisturbed when the operator is killed before and after each of its writes. The lives run at the same
 * time.
 *
 * @returns the story of a life without crashes, for tests that follow
 */
export function crashedEverywhere(env: TestEnv, lives: readonly Life[]): (life: Life) => LifeResult {
  const stories = new Map<Life, PromiseSettledResult<Stories>>();
  const storiesOf = (life: Life): Stories => {
    const result = stories.get(life);
    if (result?.status === 'fulfilled') return result.value;
    throw result?.reason;
  };
  beforeAll(async () => {
    const results = await concurrently(3, lives, async (life): Promise<Stories> => {
      const calm = await runLife(env, life);
      return { calm, crashed: await runLife(env, life, atEveryWrite()) };
    });
    results.forEach((result, i) => stories.set(lives[i] as Life, result));
  }, 900_000);

  test.each(lives.map((life) => [life.name, life] as const))(
    '%s: one life with all of the crashes ends as one without',
    (_, life) => {
      const { calm, crashed } = storiesOf(life);
      expect(differences(calm, crashed)).toEqual([]);
      expect(uncovered(life, calm, crashed)).toEqual([]);
    },
  );
  return (life) => storiesOf(life).calm;
}
