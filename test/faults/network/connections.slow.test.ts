import { useFaultBench } from '../../support/test-env';
import { form } from '../form';
import {
  cutAnswer,
  loseAnswer,
  resetBefore,
  resetMidway,
  slow,
  sometimes,
  truncatedAnswer,
} from '../../../testing/fault-proxy/faults';
import { liveThrough, seed, testUnderFaults, watches, writes } from '../support/under-fault';
import { expectNoStorm } from '../support/traffic';

jest.setTimeout(form({ short: 240_000, long: 900_000 }));

const bench = useFaultBench();

testUnderFaults(bench, [
  ['half of the requests are reset before they are sent on', sometimes(seed, 0.5, resetBefore), { writes }],
  ['half of the requests are reset while they are under way', sometimes(seed, 0.5, resetMidway), { writes }],
  ['half of the requests take effect, but their answers are lost', sometimes(seed, 0.5, loseAnswer), { writes }],
  ['every answer is slow and trickles', slow({ delayMs: 100, bytes: 500, everyMs: 5 }), { writes, watches }],
  ['half of the answers are cut in their middle', sometimes(seed, 0.5, cutAnswer), { writes }],
  ['half of the answers end too soon, though HTTP is content', sometimes(seed, 0.5, truncatedAnswer), { writes }],
]);

test('without a fault nothing is hurt, and a load takes no more than the bounds of the others are made of', async () => {
  const began = Date.now();
  const { traffic, workload } = await liveThrough(bench, (work) => work());
  expect(bench.proxy.hits(began)).toEqual([]);
  expectNoStorm(traffic, workload, 1);
});
