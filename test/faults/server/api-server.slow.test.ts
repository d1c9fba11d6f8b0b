import { setTimeout as delay } from 'node:timers/promises';
import { useTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import { disableLeaderElection, runUnderFault } from '../support/under-fault';
import type { SeenRequest } from '../../../testing/fault-proxy/fault-proxy';
import { exceptLeases } from '../../../testing/fault-proxy/faults';
import { STEADY_STATE_TIMEOUT_MS, startWithConsistencyChecks } from '../support/steady-state';

jest.setTimeout(byMode({ short: STEADY_STATE_TIMEOUT_MS, long: 900_000 }));

const env = useTestEnv({ proxy: true, operator: false });

/** How long the work has gone on when the trouble begins, and how long that lasts, in milliseconds. */
const [beforeMs, troubleMs] = byMode({ short: [500, 3_000], long: [5_000, 30_000] });

/** No answer of a server that is well takes as long, in milliseconds. */
const LONG_WAIT_MS = 1_000;

beforeAll(async () => {
  disableLeaderElection(env);
  await startWithConsistencyChecks(env);
}, 60_000);

test('the API server is killed in the middle of work, and comes back', async () => {
  const { faults } = env.plane;
  await runUnderFault(env, async (work) => {
    const working = work();
    await delay(beforeMs);
    const began = Date.now();
    await env.outage(async () => {
      await faults.killApiServer();
      await delay(troubleMs);
      await faults.startApiServer();
    });
    expect(seenSince(began).filter(({ unanswered }) => unanswered)).not.toEqual([]);
    await working;
  });
});

test('the API server freezes in the middle of work, and thaws', async () => {
  const { faults } = env.plane;
  await runUnderFault(env, async (work) => {
    const working = work();
    await delay(beforeMs);
    await env.outage(async () => {
      faults.pauseApiServer();
      const from = Date.now();
      await delay(troubleMs);
      const to = Date.now();
      faults.resumeApiServer();
      expect(seenSince(0).filter((request) => waitedFor(request, { from, to }) >= LONG_WAIT_MS)).not.toEqual([]);
    });
    await working;
  });
});

test('the operator is frozen while users work and the server forgets the past', async () => {
  await runUnderFault(env, async (work) => {
    const watched = typesOf(seenSince(0).filter(({ verb }) => verb === 'watch'));
    env.operator.pause();
    await work();
    await env.plane.faults.compactEtcd();
    await delay(byMode({ short: 0, long: 180_000 }));
    const resumed = Date.now();
    env.operator.resume();
    // It comes back with the version that it knew of each type, which is forgotten; a watch that was merely opened again would take no list.
    await env.eventually('each type to be watched from a version, and then to be listed', () => {
      const since = seenSince(resumed);
      const listed = since.filter((request, i) => isList(request) && since.slice(0, i).some(isResumption(request)));
      return Promise.resolve(typesOf(listed).length === watched.length ? true : undefined);
    });
    expect(watched).not.toEqual([]);
  });
});

test('the operator is gone while users work and the server forgets the past', async () => {
  await runUnderFault(env, async (work) => {
    await env.operator.kill();
    await work();
    await env.plane.faults.compactEtcd();
    await startWithConsistencyChecks(env);
  });
});

/** What the operator has asked about its work since a moment (milliseconds since 1970), oldest first. */
function seenSince(moment: number): readonly SeenRequest[] {
  return env.proxy.requests.filter((request) => exceptLeases(request) && request.at >= moment);
}

/** How long a request was under way between two moments, in milliseconds; a watch, which always is, not at all. */
function waitedFor({ verb, at, ended = Infinity }: SeenRequest, { from, to }: { from: number; to: number }): number {
  return verb === 'watch' ? 0 : Math.min(ended, to) - Math.max(at, from);
}

/** Whether it fills a cache: a watch that asks for what there is, or a list. */
function isList({ verb, metadataOnly, url }: SeenRequest): boolean {
  return verb === 'watch' ? url.searchParams.has('sendInitialEvents') : verb === 'list' && !metadataOnly;
}

/** Whether it goes on with the watch of a list's type where that had come to. */
function isResumption({ resource }: SeenRequest): (request: SeenRequest) => boolean {
  return (request) => request.verb === 'watch' && request.resource === resource && !isList(request);
}

function typesOf(requests: readonly SeenRequest[]): readonly string[] {
  return [...new Set(requests.map(({ resource }) => resource))];
}
