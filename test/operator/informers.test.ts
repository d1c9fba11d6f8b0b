import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import { HelloApp } from '../../constructs/kinds';
import { Informers } from '../../operator/informers';
import type { ListPage } from '../../operator/client/api-client';
import { TransportError } from '../../operator/client/errors';
import { runOperator, type OperatorOptions } from '../../operator/manager';
import { createLogger } from '../../operator/process/logger';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { Metrics } from '../../testing';
import { eventually } from './support/eventually';
import { PartialServer, QuietServer } from './support/quiet-server';

const { Deployment } = owned;
const ref = { name: 'web', namespace: 'default' };
const web: KubeObject = { apiVersion: HelloApp.apiVersion, kind: 'HelloApp', metadata: ref, spec: { image: 'i' } };

/** So many of its lists are those of a state of long ago. */
class RestoredServer extends QuietServer {
  old = 0;

  override async list(type: ResourceType): Promise<ListPage> {
    if (this.old === 0) return super.list(type);
    this.old--;
    return { items: [], resourceVersion: '1' };
  }
}

function optionsOf(client: QuietServer, signal: AbortSignal): OperatorOptions {
  const logger = createLogger({ level: 'silent' });
  const metrics = new OperatorMetrics({ defaults: false });
  const lease = { name: 'kindred', namespace: 'default' };
  return { client, kinds: [HelloApp], logger, metrics, signal, lease, onLost: () => undefined };
}

describe('a new leader', () => {
  it('brings the caches of its kinds to where the server is before it writes, if their watches are down', async () => {
    const server = new QuietServer();
    server.down = 'after the list';
    const stop = new AbortController();
    const options = optionsOf(server, stop.signal);
    // After the list, before the election: the leader before has heard of it.
    server.before = async ({ verb, type }) => {
      if (verb !== 'POST' || type.kind !== 'Lease') return;
      server.before = () => undefined;
      await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    };
    const ended = runOperator(options);
    await eventually(() => expect(server.peek(Deployment, ref)).toBeDefined()).finally(() => stop.abort());
    await ended;
  });

  it('does not list anew what it has just listed, nor ask where the server is', async () => {
    const server = new QuietServer();
    await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    const stop = new AbortController();
    const ended = runOperator(optionsOf(server, stop.signal));
    await eventually(() => expect(server.peek(Deployment, ref)).toBeDefined()).finally(() => stop.abort());
    await ended;
    expect(server.listed).toBe(1);
    expect(server.requests.filter(({ verb }) => verb === 'LIST')).toEqual([]);
  });

  it('gives up when that takes too long, and says why', async () => {
    const server = new QuietServer();
    server.down = 'after the list';
    const stop = new AbortController();
    const caches = new Informers([HelloApp], optionsOf(server, stop.signal));
    await caches.start();
    server.down = 'yes';
    await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    await expect(caches.catchUp(stop.signal, 200)).rejects.toThrow(
      /^became leader, but the caches may be behind .*apps.anupam.com\/v1\/HelloApp is not being watched: .*another replica/,
    );
    await caches.stop();
  });
});

describe('an audit', () => {
  const kind = 'apps.anupam.com/v1/HelloApp';
  const child = 'apps/v1/Deployment';
  const stop = new AbortController();
  let server: RestoredServer;
  let log: Record<string, unknown>[];
  let caches: Informers;
  let metrics: OperatorMetrics;

  beforeEach(async () => {
    server = new RestoredServer();
    await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    log = [];
    const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'info', destination: { write } });
    metrics = new OperatorMetrics({ defaults: false });
    caches = new Informers([HelloApp], { client: server, metrics, logger });
    await caches.start();
  });

  afterEach(() => caches.stop());

  /** What the audits of a type have come to until now, and how many events were missed. */
  async function counted(type: string): Promise<Record<string, number>> {
    const told = Metrics.parse(await metrics.render());
    const outcomes = ['agrees', 'missed', 'inconclusive', 'failed'];
    const audits = outcomes.map((outcome) => [outcome, told.sum('kindred_audits_total', { type, outcome })] as const);
    const events = told.sum('kindred_missed_events_total', { type });
    return Object.fromEntries([...audits, ['events', events] as const].filter(([, count]) => count > 0));
  }

  it('counts an event that the watch withheld, says of which object, and makes it good', async () => {
    await caches.checkConsistency(stop.signal);
    expect([await counted(kind), await counted(child)]).toEqual([{ agrees: 1 }, { agrees: 1 }]);
    await server.patch(HelloApp.type, ref, { spec: { image: 'new' } }, { type: 'merge', fieldManager: 'kubectl' });
    server.bookmark();
    await caches.checkConsistency(stop.signal);
    expect(await counted(kind)).toEqual({ agrees: 1, missed: 1, events: 1 });
    expect(await counted(child)).toEqual({ agrees: 2 });
    const msg = expect.stringContaining('the watch missed events') as string;
    const told = { level: 'error', type: kind, missed: 1, some: ['default/web'], msg };
    expect(log).toEqual([expect.objectContaining(told)]);
    expect(caches.of(HelloApp.type).get(ref)?.object).toMatchObject({ spec: { image: 'new' } });
    await caches.checkConsistency(stop.signal);
    expect(await counted(kind)).toEqual({ agrees: 2, missed: 1, events: 1 });
  });

  it('counts one that proves nothing as such, not as one that agrees', async () => {
    server.old = 1;
    await caches.checkConsistency(stop.signal);
    expect([await counted(kind), await counted(child)]).toEqual([{ inconclusive: 1 }, { agrees: 1 }]);
    expect(log).toEqual([]);
  });

  it('counts one that fails as such, says why, and audits the other types', async () => {
    server.before = ({ verb, type }) => {
      if (verb === 'LIST' && type.kind === 'HelloApp') throw new TransportError('no route', 'LIST');
    };
    await caches.checkConsistency(stop.signal);
    expect([await counted(kind), await counted(child)]).toEqual([{ failed: 1 }, { agrees: 1 }]);
    const err = expect.objectContaining({ message: expect.stringContaining('no route') as string }) as object;
    expect(log).toEqual([expect.objectContaining({ level: 'warn', type: kind, err })]);
  });

  it('counts nothing when the operator stops meanwhile', async () => {
    const stopping = new AbortController();
    server.before = ({ verb }) => {
      if (verb === 'LIST') stopping.abort(new Error('stopping'));
      stopping.signal.throwIfAborted();
    };
    await caches.checkConsistency(stopping.signal);
    expect([await counted(kind), await counted(child)]).toEqual([{}, {}]);
    expect(log).toEqual([]);
  });

  it('says that the history was set back, lists anew, and counts nothing as missed', async () => {
    await caches.checkConsistency(stop.signal);
    expect(log).toEqual([]);
    server.old = Infinity;
    await caches.checkConsistency(stop.signal);
    const saysSo = { level: 'warn', server: '1', msg: expect.stringContaining('were set back') as string };
    expect(log).toEqual([
      expect.objectContaining({ ...saysSo, type: kind }),
      expect.objectContaining({ ...saysSo, type: child }),
    ]);
    expect(server.listed).toBe(2);
    expect([await counted(kind), await counted(child)]).toEqual([
      { agrees: 1, inconclusive: 1 },
      { agrees: 1, inconclusive: 1 },
    ]);
  });
});

describe('a type that the server does not have', () => {
  const key = 'apps/v1/Deployment';
  const stop = new AbortController();
  let server: PartialServer;
  let log: Record<string, unknown>[];
  let caches: Informers;
  let changes: string[];
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: ref, spec: { template } };

  beforeEach(() => {
    server = new PartialServer();
    log = [];
    changes = [];
    const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'info', destination: { write } });
    caches = new Informers([HelloApp], { client: server, metrics: new OperatorMetrics({ defaults: false }), logger });
    caches.onTypeChange((type) => changes.push(`${type.kind} ${caches.isMissing(type) ? 'missing' : 'there'}`));
  });
  afterEach(() => caches.stop());

  it('holds back neither the start, nor the readiness, nor a new leader, nor the audits of the others', async () => {
    server.lacks = 'Deployment';
    await caches.start();
    expect([caches.isMissing(Deployment), caches.isMissing(HelloApp.type)]).toEqual([true, false]);
    expect(caches.problem()).toBeUndefined();
    await caches.catchUp(stop.signal, 1_000);
    await caches.checkConsistency(stop.signal);
    expect(log.filter(({ level }) => level === 'warn')).toEqual([
      expect.objectContaining({ type: key, hint: expect.stringContaining('apply its CRD') as string }),
    ]);
  });

  it('is said once, however often it is asked for', async () => {
    server.lacks = 'Deployment';
    await caches.start();
    await eventually(() => expect(server.refused).toBeGreaterThan(2));
    expect(log.filter(({ level }) => level === 'warn')).toHaveLength(1);
  });

  it('is listed when it is installed, and told of then', async () => {
    server.lacks = 'Deployment';
    await caches.start();
    await server.create(Deployment, deployment, { fieldManager: 'kubectl' });
    server.lacks = undefined;
    await eventually(() => expect(changes).toEqual(['Deployment missing', 'Deployment there']));
    expect(caches.of(Deployment).get(ref)).toBeDefined();
    expect(caches.problem()).toBeUndefined();
  });

  it('may be removed later, and listed anew when it is installed again', async () => {
    await caches.start();
    expect(changes).toEqual([]);
    server.lacks = 'Deployment';
    server.endWatches('Deployment');
    await eventually(() => expect(changes).toEqual(['Deployment missing']));
    expect(caches.problem()).toBeUndefined();
    await server.create(Deployment, deployment, { fieldManager: 'kubectl' });
    server.lacks = undefined;
    await eventually(() => expect(changes).toEqual(['Deployment missing', 'Deployment there']));
    expect(caches.of(Deployment).get(ref)).toBeDefined();
  });

  it('does not keep a new leader from leading when its kind itself is missing', async () => {
    server.lacks = 'HelloApp';
    await caches.start();
    await caches.catchUp(stop.signal, 1_000);
    expect(caches.isMissing(HelloApp.type)).toBe(true);
  });
});
