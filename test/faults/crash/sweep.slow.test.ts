// The gate keeps one of these lives: crash.test.ts.
import { operatorKinds, useTestEnv } from '../../support/test-env';
import { isLongMode } from '../mode';
import { PROVISIONER_LIFE, crashPointFromEnv, formatCrashPoint } from './crash-point';
import { crashedEverywhere } from './crashed-everywhere';
import { crashAt, sweepEachWrite } from './sweep';
import { lives } from './lives';
import { runLife } from './run-life';

const named = lives.map((life) => [life.name, life] as const);
const env = useTestEnv({ operator: false });
jest.setTimeout(2 * 3_600_000);

(crashPointFromEnv === undefined ? describe : describe.skip)(
  'the operator, killed before and after each of its writes',
  () => {
    const calmStoryOf = crashedEverywhere(env, lives);

    test('each of the six kinds has its life', () => {
      expect(new Set(lives.map(({ kind }) => kind))).toEqual(new Set(operatorKinds));
    });

    (isLongMode ? test : test.skip).each(named)('%s: lives with one crash each end as one without', async (_, life) => {
      const { failures, missed } = await sweepEachWrite(env, life, calmStoryOf(life));
      if (missed.length > 0) console.warn(`these writes did not come again:\n${missed.join('\n')}`);
      expect(failures).toEqual([]);
    });

    test('nothing was refused to it', async () => {
      expect((await env.auditLog()).refusals()).toEqual([]);
    });
  },
);

const lonely = named.filter(([name]) => name === crashPointFromEnv?.life);
if (crashPointFromEnv !== undefined && lonely.length === 0 && crashPointFromEnv.life !== PROVISIONER_LIFE) {
  const known = [...named.map(([name]) => name), PROVISIONER_LIFE].join(', ');
  throw new Error(`KINDRED_CRASH_AT names the life "${crashPointFromEnv.life}"; there are ${known}`);
}

(lonely.length === 0 ? describe.skip : describe)('the operator, killed at one write', () => {
  test.each(lonely.length === 0 ? named : lonely)('%s', async (_, life) => {
    if (crashPointFromEnv === undefined) throw new Error('no crash point was given');
    const found = await crashAt(env, life, await runLife(env, life), crashPointFromEnv);
    if (found === undefined) throw new Error(`the operator never came to ${formatCrashPoint(crashPointFromEnv)}`);
    expect(found).toEqual([]);
  });
});
