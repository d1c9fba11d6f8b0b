import { baseline, expectNoStorm, measureTraffic, type ObservedRequest, type Traffic } from './traffic';

const BEGAN = 1_000_000;
const workload = { objects: 12, changes: 8 };
const names = Array.from({ length: workload.objects }, (_, i) => `object-${String(i)}`);

const type = { resource: 'deployments.apps', writes: false, isBackground: false, metadataOnly: false };
/** Of every write. */
const what = { ...type, namespace: 'ns', writes: true };
const url = new URL('https://api-server/apis/apps/v1/namespaces/ns/deployments');

function write(name: string, requeueAfterMs: number): ObservedRequest {
  return { ...what, verb: 'patch', name, url, at: BEGAN + requeueAfterMs };
}

/** A create, which tells its name in its body only. */
function create(name: string, requeueAfterMs: number): ObservedRequest {
  return { ...what, verb: 'create', createdName: name, url, at: BEGAN + requeueAfterMs };
}

/** A list as audits take them. */
function audit(requeueAfterMs: number): ObservedRequest {
  const all = new URL('https://api-server/apis/apps/v1/deployments?limit=500');
  return { ...type, verb: 'list', url: all, metadataOnly: true, at: BEGAN + requeueAfterMs };
}

/** A watch of one of these types is opened. */
function watch(resource: string, requeueAfterMs: number): ObservedRequest {
  const from = new URL('https://api-server/apis/apps/v1/deployments?watch=true&resourceVersion=7');
  return { ...type, resource, verb: 'watch', url: from, at: BEGAN + requeueAfterMs };
}

/** The list of one of these types that fills a cache. */
function cacheList(resource: string, requeueAfterMs: number, query = 'limit=500'): ObservedRequest {
  const all = new URL(`https://api-server/apis/apps/v1/deployments?${query}`);
  return { ...type, resource, verb: 'list', url: all, at: BEGAN + requeueAfterMs };
}

function every(
  ms: number,
  untilMs: number,
  ask: (requeueAfterMs: number) => ObservedRequest,
): readonly ObservedRequest[] {
  return Array.from({ length: Math.floor(untilMs / ms) }, (_, i) => ask(i * ms));
}

/** Tried again after 5 ms, and then after twice as long each time. */
function backingOff(name: string, fromMs: number, untilMs: number): readonly ObservedRequest[] {
  const tries: ObservedRequest[] = [];
  for (let at = fromMs, wait = 5; at < untilMs; at += wait, wait *= 2) tries.push(write(name, at));
  return tries;
}

const inSeconds = (seconds: number, asked: readonly ObservedRequest[]): Traffic =>
  measureTraffic(asked, BEGAN, BEGAN + seconds * 1000);
const judge = (traffic: Traffic): void => expectNoStorm(traffic, workload);

test('a sane run is no storm: one write for each change, and eleven where all of them fail', () => {
  const sane = names.flatMap((name) => every(400, 400 * workload.changes, (at) => write(name, at)));
  expect(inSeconds(10, sane)).toEqual({
    requests: names.length * workload.changes,
    rate: (names.length * workload.changes) / 5,
    most: { object: 'deployments.apps ns/object-0', writes: workload.changes },
    densest: { object: 'deployments.apps ns/object-0', writes: workload.changes },
    opened: { what: 'none', requests: 0 },
  });
  judge(inSeconds(10, sane));
  const failing = names.flatMap((name, i) => backingOff(name, i * 100, 10_000));
  expect(inSeconds(10, failing).densest.writes).toBe(10);
  judge(inSeconds(10, [...sane, ...failing]));
});

test.each([
  ['one write', (at: number) => write('object-0', at)],
  ['one create', (at: number) => create('object-0', at)],
])('%s tried again every 100 ms is a storm, in a short trouble as in a long one', (_what, ask) => {
  const events = every(150, 4_500, ask);
  judge(inSeconds(5, [...events, ...backingOff('object-0', 0, 5_000)]));
  for (const seconds of [5, 60]) {
    const traffic = inSeconds(seconds, [...events, ...every(100, seconds * 1000, ask)]);
    expect(traffic.densest).toEqual({ object: 'deployments.apps ns/object-0', writes: 80 });
    expect(() => judge(traffic)).toThrow();
  }
});

test('now and then is a storm too when it goes on and on', () => {
  const traffic = inSeconds(
    60,
    every(750, 60_000, (at) => write('object-0', at)),
  );
  expect(traffic.densest.writes).toBeLessThan(baseline.writesInWindow);
  expect(() => judge(traffic)).toThrow();
});

test('a loop without delays is a storm, even if it reads only', () => {
  const writes = every(2, 10_000, (at) => write('object-0', at));
  expect(() => judge(inSeconds(10, writes))).toThrow();
  const reads = writes.map((asked): ObservedRequest => ({ ...asked, verb: 'get', writes: false }));
  expect(inSeconds(10, reads)).toMatchObject({ rate: 500, most: { writes: 0 } });
  expect(() => judge(inSeconds(10, reads))).toThrow();
});

const types = Array.from({ length: 12 }, (_, i) => `type-${String(i)}`);

test('watches that come back after growing delays are no storm, however many types there are', () => {
  const back = [0, 100, 300, 700, 1_500, 3_100, 6_300];
  // Each of them after a list, and once more from the beginning.
  const asked = types.flatMap((type) =>
    back.flatMap((at) => [watch(type, at), cacheList(type, at), watch(type, at + 5_000)]),
  );
  const traffic = inSeconds(15, asked);
  expect(traffic.opened).toMatchObject({ requests: 7 });
  judge(traffic);
});

test.each([
  ['a watch', (at: number) => watch('type', at)],
  ['a list', (at: number) => cacheList('type', at)],
])('%s of one type is a storm when it is asked for after 200 ms again and again', (_what, ask) => {
  const traffic = inSeconds(10, every(200, 10_000, ask));
  expect(traffic.opened).toMatchObject({ requests: 25 });
  expect(() => judge(traffic)).toThrow();
});

test('further pages are as many as there are objects', () => {
  const pages = every(20, 5_000, (at) => cacheList('type', at, 'limit=500&continue=token'));
  expect(inSeconds(5, pages).opened.requests).toBe(0);
});

test('what looks like an audit is counted when it comes at the pace of the work', () => {
  const one = new URL('https://api-server/apis/apps/v1/namespaces/ns/deployments?fieldSelector=metadata.name%3Dx');
  const version = new URL('https://api-server/apis/apps/v1/deployments?limit=1');
  // A look at one object, at many in a namespace, and at the version that the server is at.
  for (const look of [{ namespace: 'ns', url: one }, { namespace: 'ns' }, { url: version }]) {
    const looks = every(2, 10_000, (at) => ({ ...audit(at), ...look }));
    expect(inSeconds(10, looks).rate).toBe(500);
  }
});

test('audits, Leases, events and what came at other times are not counted', () => {
  const audits = every(2, 10_000, audit);
  expect(inSeconds(10, audits)).toMatchObject({ requests: audits.length, rate: 0 });
  const lease: ObservedRequest = { ...write('leader', 0), resource: 'leases.coordination.k8s.io' };
  const event: ObservedRequest = { ...write('event', 0), resource: 'events', isBackground: true };
  const others = [lease, event, write('early', -1), write('late', 10_000)];
  expect(inSeconds(10, others)).toMatchObject({ requests: 1, most: { writes: 0 }, densest: { writes: 0 } });
});
