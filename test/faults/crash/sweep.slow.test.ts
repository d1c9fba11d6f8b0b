// The gate keeps one of these lives: crash.test.ts.
import { operatorKinds, useBench } from '../../support/test-env';
import { long } from '../form';
import { PROVISIONER_LIFE, only, pointText } from './crash-point';
import { crashedEverywhere } from './crashed-everywhere';
import { crashAt, sweepEachWrite } from './sweep';
import { lives } from './lives';
import { liveThrough } from './run-life';

const named = lives.map((life) => [life.name, life] as const);
const bench = useBench({ operator: false });
jest.setTimeout(2 * 3_600_000);

(only === undefined ? describe : describe.skip)('the operator, killed before and after each of its writes', () => {
  const calmStoryOf = crashedEverywhere(bench, lives);

  test('each of the six kinds has its life', () => {
    expect(new Set(lives.map(({ kind }) => kind))).toEqual(new Set(operatorKinds));
  });

  (long ? test : test.skip).each(named)('%s: lives with one crash each end as one without', async (_, life) => {
    const { failures, missed } = await sweepEachWrite(bench, life, calmStoryOf(life));
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
