import { waitFor } from '../../../testing/wait-for';
import { operatorKinds, useTestEnv } from '../../support/test-env';
import { byMode, isLongMode } from '../mode';
import { when, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import type { ProxiedRequest } from '../../../testing/fault-proxy/exchange';
import { exceptLeases, silentAfter, silentWatch, withProbability, stall } from '../../../testing/fault-proxy/faults';
import { startWithConsistencyChecks } from '../support/steady-state';
import { runUnderFault, seed, withFault, watches, writes } from '../support/under-fault';

// In all of these nobody cuts a connection: that nothing comes any more the operator has to notice by itself.

jest.setTimeout(byMode({ short: 300_000, long: 900_000 }));

/** A watch is given up after 70 s of silence, a request after 30 s; a busy machine takes some more. */
const patienceMs = { watches: 100_000, requests: 60_000 };

const env = useTestEnv({ proxy: true, operator: false });
const silence = new AbortController();

beforeAll(async () => {
  // Before the watches are opened, which it leaves alone until silence falls.
  env.proxy.fault = silentAfter(silence.signal);
  await startWithConsistencyChecks(env);
}, 60_000);

beforeEach(async () => {
  if (!env.operator.running) await startWithConsistencyChecks(env);
}, 60_000);

// Whatever has failed, the next test begins with connections that are sound.
afterEach(() => env.clearFaults());

test('watches that are open fall silent while new connections pass: each is opened anew', async () => {
  await runUnderFault(env, async (work) => {
    const watched = watchedSince(0);
    const began = Date.now();
    silence.abort();
    await work();
    await waitFor(() => watchedSince(began).size === watched.size, {
      describe: `each of the ${String(watched.size)} watches to be opened anew`,
      timeout: patienceMs.watches,
    });
    // There was something to hear of.
    const unheard = env.proxy.faultedRequests().map(({ resource }) => resource);
    expect(unheard).toEqual(expect.arrayContaining(operatorKinds.map(({ crdName }) => crdName)));
  });
});

test('a third of the requests get silence: they are given up, and the work is done', async () => {
  const swallowed = counted(stall);
  const isAnswered = (request: ProxiedRequest): boolean => exceptLeases(request) && request.verb !== 'watch';
  await runUnderFault(env, async (work) => {
    await withFault(env, when(isAnswered, withProbability(seed, 0.33, swallowed.fault)), { writes }, work);
    await waitFor(() => swallowed.underWay() === 0, {
      describe: 'the requests without an answer to be given up',
      timeout: patienceMs.requests,
    });
  });
});

// What takes 70 s more is left to the long form.
(isLongMode ? test : test.skip)(
  'half of the watches are silent from their beginning, a fifth of the requests too',
  async () => {
    const silent = counted(silentWatch);
    const swallowed = counted(stall);
    const watch = withProbability(seed, 0.5, silent.fault);
    const request = withProbability(seed, 0.2, swallowed.fault);
    await runUnderFault(env, async (work) => {
      const fault: Fault = (exchange) => (exchange.request.verb === 'watch' ? watch : request)(exchange);
      await withFault(env, when(exceptLeases, fault), { watches, writes }, async () => {
        // Only what is opened from now on can be silent from its beginning.
        env.proxy.dropConnections();
        await work();
      });
      await waitFor(() => silent.underWay() + swallowed.underWay() === 0, {
        describe: 'what is silent to be given up',
        timeout: patienceMs.watches,
      });
    });
  },
);

/** The types of which a watch was opened since a moment, in milliseconds since 1970. */
function watchedSince(moment: number): ReadonlySet<string> {
  const opened = env.proxy.requests.filter(({ verb, at }) => verb === 'watch' && at >= moment);
  return new Set(opened.map(({ resource }) => resource));
}

/** A fault, and how many of the requests that it hurt are still under way. */
function counted(fault: Fault): { readonly fault: Fault; readonly underWay: () => number } {
  let underWay = 0;
  return {
    underWay: () => underWay,
    fault: async (exchange) => {
      underWay += 1;
      try {
        await fault(exchange);
      } finally {
        underWay -= 1;
      }
    },
  };
}
