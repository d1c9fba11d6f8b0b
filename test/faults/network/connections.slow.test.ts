import { useTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import {
  cutResponse,
  dropResponse,
  resetBefore,
  resetMidway,
  slow,
  withProbability,
  truncatedResponse,
} from '../../../testing/fault-proxy/faults';
import { runUnderFault, seed, testUnderFaults, watches, writes } from '../support/under-fault';
import { expectNoStorm } from '../support/traffic';

jest.setTimeout(byMode({ short: 240_000, long: 900_000 }));

const env = useTestEnv({ proxy: true, operator: false });

testUnderFaults(env, [
  ['half of the requests are reset before they are sent on', withProbability(seed, 0.5, resetBefore), { writes }],
  ['half of the requests are reset while they are under way', withProbability(seed, 0.5, resetMidway), { writes }],
  [
    'half of the requests take effect, but their answers are lost',
    withProbability(seed, 0.5, dropResponse),
    { writes },
  ],
  ['every answer is slow and trickles', slow({ delayMs: 100, bytes: 500, everyMs: 5 }), { writes, watches }],
  ['half of the answers are cut in their middle', withProbability(seed, 0.5, cutResponse), { writes }],
  [
    'half of the answers end too soon, though HTTP is content',
    withProbability(seed, 0.5, truncatedResponse),
    { writes },
  ],
]);

test('without a fault nothing is hurt, and a load takes no more than the bounds of the others are made of', async () => {
  const began = Date.now();
  const { traffic, workload } = await runUnderFault(env, (work) => work());
  expect(env.proxy.faultedRequests(began)).toEqual([]);
  expectNoStorm(traffic, workload, 1);
});
