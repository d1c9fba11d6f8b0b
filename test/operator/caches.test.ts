import type { KubeObject } from '../../constructs/core/kube-object';
import { owned } from '../../constructs/core/owned';
import type { ResourceType } from '../../constructs/core/resource-type';
import { HelloApp } from '../../constructs/kinds';
import { Caches } from '../../operator/src/caches';
import type { ListPage, WatchEvent, WatchOptions } from '../../operator/src/client/api-client';
import { TransportError } from '../../operator/src/client/errors';
import { runOperator } from '../../operator/src/operator';
import type { OperatorOptions } from '../../operator/src/operator';
import { createLogger } from '../../operator/src/runtime/logger';
import { OperatorMetrics } from '../../operator/src/runtime/metrics';
import { eventually } from './support/eventually';
import { MemoryApiServer } from './support/memory-api-server';

const { Deployment } = owned;
const ref = { name: 'web', namespace: 'default' };
const web: KubeObject = { apiVersion: HelloApp.apiVersion, kind: 'HelloApp', metadata: ref, spec: { image: 'i' } };

/** Its watches list, and say nothing more; those of the kind can be down. */
class QuietServer extends MemoryApiServer {
  listed = 0;
  /** A watch of the kind fails: once it has listed, or at once. */
  down: 'no' | 'after the list' | 'yes' = 'no';

  override async *watch(type: ResourceType = Deployment, options?: WatchOptions): AsyncIterable<WatchEvent> {
    const isKind = type.kind === 'HelloApp';
    if (isKind && this.down === 'yes') throw new TransportError('no route', 'WATCH');
    options?.onOpen?.();
    if (options?.sendInitialEvents === true) {
      if (isKind) this.listed++;
      for (const object of this.all(type)) yield { type: 'ADDED', object };
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const { apiVersion, kind } = type;
      const metadata = { name: '', resourceVersion: this.version, annotations };
      yield { type: 'BOOKMARK', object: { apiVersion, kind, metadata } };
    }
    if (isKind && this.down === 'after the list') throw new TransportError('cut', 'WATCH');
    await new Promise((_resolve, reject) => {
      const end = (): void => reject(options?.signal.reason as Error);
      if (options?.signal.aborted === true) end();
      else options?.signal.addEventListener('abort', end, { once: true });
    });
  }
}

/** Its lists are those of a state of long ago. */
class RestoredServer extends QuietServer {
  restored = false;

  override async list(type: ResourceType): Promise<ListPage> {
    return this.restored ? { items: [], resourceVersion: '1' } : super.list(type);
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
    const caches = new Caches([HelloApp], optionsOf(server, stop.signal));
    await caches.start();
    server.down = 'yes';
    await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    const caughtUp = caches.catchUp(stop.signal, 200).finally(() => caches.stop());
    await expect(caughtUp).rejects.toThrow(
      /^became leader, but the caches may be behind .*apps.anupam.com\/v1\/HelloApp is not being watched: .*another replica/,
    );
  });
});

describe('an audit', () => {
  it('says that the history was set back, lists anew, and counts nothing as missed', async () => {
    const server = new RestoredServer();
    await server.create(HelloApp.type, web, { fieldManager: 'kubectl' });
    const log: Record<string, unknown>[] = [];
    const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'info', destination: { write } });
    const stop = new AbortController();
    const { client, metrics } = optionsOf(server, stop.signal);
    const caches = new Caches([HelloApp], { client, metrics, logger });
    await caches.start();
    await caches.audit(stop.signal);
    expect(log).toEqual([]);
    server.restored = true;
    await caches.audit(stop.signal).finally(() => caches.stop());
    const saysSo = { level: 'warn', server: '1', msg: expect.stringContaining('were set back') as string };
    expect(log).toEqual([
      expect.objectContaining({ ...saysSo, type: 'apps.anupam.com/v1/HelloApp' }),
      expect.objectContaining({ ...saysSo, type: 'apps/v1/Deployment' }),
    ]);
    expect(server.listed).toBe(2);
    expect(await metrics.registry.metrics()).not.toMatch(/^kindred_missed_events_total\{.*\} [1-9]/m);
  });
});
