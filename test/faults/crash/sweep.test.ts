import { operatorKinds, useBench } from '../../e2e/operator/support/bench';
import { long } from '../form';
import { everywhere } from './choices';
import { concurrently } from './concurrently';
import { pointText, PROVISIONER_LIFE } from './crash-point';
import { crashAt, sweepEachWrite } from './each-write';
import { differences, uncovered } from './judge';
import type { Life } from './life';
import { lives } from './lives';
import { liveThrough } from './live-through';
import type { LifeStory } from './live-through';
import { only } from './only';

const named = lives.map((life) => [life.name, life] as const);
const bench = useBench({ operator: false });
jest.setTimeout(2 * 3_600_000);

interface Stories {
  readonly calm: LifeStory;
  readonly crashed: LifeStory;
}

(only === undefined ? describe : describe.skip)('the operator, killed before and after each of its writes', () => {
  const stories = new Map<Life, PromiseSettledResult<Stories>>();
  const storiesOf = (life: Life): Stories => {
    const result = stories.get(life);
    if (result?.status === 'fulfilled') return result.value;
    throw result?.reason;
  };
  beforeAll(async () => {
    const results = await concurrently(3, lives, async (life): Promise<Stories> => {
      const calm = await liveThrough(bench, life);
      return { calm, crashed: await liveThrough(bench, life, everywhere()) };
    });
    results.forEach((result, i) => stories.set(lives[i] as Life, result));
  }, 900_000);

  test('each of the six kinds has its life', () => {
    expect(new Set(lives.map(({ kind }) => kind))).toEqual(new Set(operatorKinds));
  });

  test.each(named)('%s: one life with all of the crashes ends as one without', (_, life) => {
    const { calm, crashed } = storiesOf(life);
    expect(differences(calm, crashed)).toEqual([]);
    expect(uncovered(life, calm, crashed)).toEqual([]);
  });

  (long ? test : test.skip).each(named)('%s: lives with one crash each end as one without', async (_, life) => {
    const { failures, missed } = await sweepEachWrite(bench, life, storiesOf(life).calm);
    if (missed.length > 0) console.warn(`these writes did not come again:\n${missed.join('\n')}`);
    expect(failures).toEqual([]);
  });

  test('nothing was refused to it', async () => {
    expect((await bench.audit()).refusals()).toEqual([]);
  });
});

const lonely = named.filter(([name]) => name === only?.life);
if (only !== undefined && lonely.length === 0 && only.life !== PROVISIONER_LIFE) {
  const known = [...named.map(([name]) => name), PROVISIONER_LIFE].join(', ');
  throw new Error(`KINDRED_CRASH_AT names the life "${only.life}"; there are ${known}`);
}

(lonely.length === 0 ? describe.skip : describe)('the operator, killed at one write', () => {
  test.each(lonely.length === 0 ? named : lonely)('%s', async (_, life) => {
    if (only === undefined) throw new Error('no crash point was given');
    const found = await crashAt(bench, life, await liveThrough(bench, life), only);
    if (found === undefined) throw new Error(`the operator never came to ${pointText(only)}`);
    expect(found).toEqual([]);
  });
});
