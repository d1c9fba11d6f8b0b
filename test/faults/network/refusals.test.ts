import { useFaultBench } from '../fault-bench';
import { form } from '../form';
import { conflict, internalError, sometimes, tooManyRequests, unavailable } from '../proxy/faults';
import { seed } from '../support/seed';
import { testUnderFaults } from './under-fault';

jest.setTimeout(form({ short: 120_000, long: 900_000 }));

testUnderFaults(useFaultBench(), [
  ['half of the requests are too many, 429', sometimes(seed, 0.5, tooManyRequests(1))],
  ['half of the requests are answered 500', sometimes(seed, 0.5, internalError)],
  ['half of the requests are answered 503', sometimes(seed, 0.5, unavailable())],
  ['a third of the requests are answered 503 with Retry-After', sometimes(seed, 0.33, unavailable(1))],
  ['half of the writes meet a conflict, 409', sometimes(seed, 0.5, conflict)],
  ['everything is answered 500', internalError],
]);
