import fc from 'fast-check';
import { eventually } from '../support/eventually';
import { status } from '../support/fake-api-server';
import type { FakeCluster } from '../support/fake-cluster';
import { seed, withReflector, type Harness } from './reflector-harness';

type Step = (harness: Harness) => void | Promise<void>;

const name = fc.constantFrom('seed-0', 'seed-1', 'x', 'y', 'z');
const put: fc.Arbitrary<Step> = name.map(
  (which) =>
    ({ cluster }) =>
      void cluster.put(which),
);
const remove: fc.Arbitrary<Step> = name.map((which) => ({ cluster }) => {
  if (`default/${which}` in cluster.state()) cluster.remove(which);
});

/** Each costs at most a watch, a refused one, and a list. */
const faults: Record<string, (cluster: FakeCluster) => void> = {
  cut: (cluster) => cluster.server.cut(),
  end: (cluster) => cluster.end(),
  half: (cluster) => {
    cluster.sendBytes(Buffer.from('{"type":"ADDED","object":{"meta'));
    cluster.silence();
    cluster.server.cut();
  },
  nonsense: (cluster) => cluster.sendBytes(Buffer.from('nonsense\n')),
  compact: (cluster) => {
    cluster.compact();
    cluster.server.cut();
  },
  'compact, told in the stream': (cluster) => {
    cluster.expiresInStream = true;
    cluster.compact();
    cluster.server.cut();
  },
  'errors next': (cluster) => {
    cluster.server.next((_request, response) => status(response, 500, 'InternalError'));
    cluster.server.cut();
  },
  'expired at the server only': (cluster) =>
    cluster.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }),
  bookmark: (cluster) => {
    cluster.tick(3);
    cluster.bookmark();
  },
};

const fault: fc.Arbitrary<Step> = fc.constantFrom(...Object.keys(faults)).map(
  (which) =>
    ({ cluster }) =>
      faults[which]?.(cluster),
);
const breathe: fc.Arbitrary<Step> = fc.constant(() => new Promise<void>((resolve) => setTimeout(resolve, 2)));
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: put },
    { weight: 2, arbitrary: remove },
    { weight: 2, arbitrary: fault },
    { weight: 2, arbitrary: breathe },
  ),
  { maxLength: 40 },
);

test('whatever goes wrong, the cache ends as the server, by few requests, and nothing was missed', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (played, pagedList) => {
      await withReflector(
        async (harness) => {
          await harness.reflector.synced();
          for (const step of played) await step(harness);
          harness.cluster.server.forget();
          await harness.caughtUp();
          expect(harness.cluster.server.requests.length).toBeLessThanOrEqual(4 + 4 * played.length);
          await eventually(() => expect(harness.reflector.state().watching).toBe(true));
          expect(await harness.reflector.checkConsistency()).toMatchObject({ missed: 0 });
          // Handlers that follow the events know what the cache knows. What came and went at once may still be on its way.
          await eventually(() => {
            const known = new Map<string, string | undefined>();
            for (const { type, object } of harness.events) {
              const { metadata } = object.object;
              if (type === 'deleted') known.delete(`${metadata.namespace}/${metadata.name}`);
              else known.set(`${metadata.namespace}/${metadata.name}`, metadata.resourceVersion);
            }
            expect(Object.fromEntries(known)).toEqual(harness.cluster.state());
          });
        },
        { prepare: seed(2), pagedList, backoff: { initialMs: 1, maxMs: 5 } },
      );
    }),
    { numRuns: 100 },
  );
}, 60_000);
