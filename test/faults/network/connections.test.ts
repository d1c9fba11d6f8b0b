import { useFaultBench } from '../fault-bench';
import { form } from '../form';
import {
  cutAnswer,
  loseAnswer,
  resetBefore,
  resetMidway,
  slow,
  sometimes,
  stall,
  truncatedAnswer,
} from '../proxy/faults';
import { seed } from '../support/seed';
import { testUnderFaults } from './under-fault';

jest.setTimeout(form({ short: 120_000, long: 900_000 }));

testUnderFaults(useFaultBench(), [
  ['half of the requests are reset before they are sent on', sometimes(seed, 0.5, resetBefore)],
  ['half of the requests are reset while they are under way', sometimes(seed, 0.5, resetMidway)],
  ['half of the requests take effect, but their answers are lost', sometimes(seed, 0.5, loseAnswer)],
  ['a fifth of the requests and watches get silence', sometimes(seed, 0.2, stall)],
  ['every answer is slow and trickles', slow({ delayMs: 100, bytes: 500, everyMs: 5 })],
  ['half of the answers are cut in their middle', sometimes(seed, 0.5, cutAnswer)],
  ['half of the answers end too soon, though HTTP is content', sometimes(seed, 0.5, truncatedAnswer)],
]);
