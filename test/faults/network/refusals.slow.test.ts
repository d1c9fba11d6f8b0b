import { useTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import { when, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import {
  conflict,
  internalError,
  withProbability,
  tooManyRequests,
  unavailable,
} from '../../../testing/fault-proxy/faults';
import { seed, testUnderFaults, watchesFor, writes, writesFor } from '../support/under-fault';

jest.setTimeout(byMode({ short: 240_000, long: 900_000 }));

/** Reads and watches pass, so that the operator knows all that is to be done. */
const everyWrite = (fault: Fault): Fault => when((request) => request.writes, fault);

/** By then a request that is tried again without growing delays has been sent more often than it may. */
const LONG_MS = 9_000;
const forLong = { writes: writesFor(LONG_MS) };

testUnderFaults(useTestEnv({ proxy: true, operator: false }), [
  ['half of the requests are too many, 429', withProbability(seed, 0.5, tooManyRequests(1)), { writes }],
  ['half of the requests are answered 500', withProbability(seed, 0.5, internalError), { writes }],
  ['half of the requests are answered 503', withProbability(seed, 0.5, unavailable()), { writes }],
  [
    'a third of the requests are answered 503 with Retry-After',
    withProbability(seed, 0.33, unavailable(1)),
    { writes },
  ],
  ['half of the writes meet a conflict, 409', withProbability(seed, 0.5, conflict), { writes }],
  ['every write is one too many, 429', everyWrite(tooManyRequests(1)), forLong],
  ['every write is answered 500', everyWrite(internalError), forLong],
  ['every write is answered 503', everyWrite(unavailable()), forLong],
  ['every write meets a conflict, 409', conflict, forLong],
  ['everything is answered 500', internalError, { watches: watchesFor(LONG_MS) }],
]);
