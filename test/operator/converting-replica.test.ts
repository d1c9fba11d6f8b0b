import { once } from 'node:events';
import { HelloApp } from '../../constructs/kinds';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import type { ListOptions, ListPage, WatchEvent, WatchOptions } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { Informers } from '../../operator/informers';
import { runOperator } from '../../operator/manager';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { createLogger } from '../../operator/process/logger';
import { Stall } from '../constructs/kind/versions-kind';
import { eventually } from './support/eventually';
import { CertificateDirectory } from './webhook/certificates';
import { ask } from './webhook/https-client';
import { PartialServer, type QuietServer } from './support/quiet-server';

const { Deployment } = owned;

/** Its lists of one type fail so. */
class FailingServer extends PartialServer {
  failure: { readonly kind: string; readonly code: number } | undefined;
  silent = false;
  /** Its watches of the kind open, and that is all. */
  sendsNothing = false;
  opened = false;
  /** The types that were asked for. */
  readonly asked: string[] = [];

  override async list(type: ResourceType, options?: ListOptions): Promise<ListPage> {
    await this.refuse(type, options?.signal);
    return super.list(type, options);
  }

  override async *watch(type: ResourceType = Deployment, options?: WatchOptions): AsyncIterable<WatchEvent> {
    await this.refuse(type, options?.signal);
    if (this.sendsNothing && type.kind === 'Stall') {
      options?.onOpen?.();
      this.opened = true;
      await once(options!.signal, 'abort');
    }
    yield* super.watch(type, options);
  }

  private async refuse({ kind, plural }: ResourceType, signal?: AbortSignal): Promise<void> {
    this.asked.push(kind);
    if (this.silent) await once(signal!, 'abort');
    if (kind !== this.failure?.kind) return;
    const message = 'conversion webhook for shops failed';
    throw new ApiError({ code: this.failure.code, reason: 'no', message, causes: [] }, `LIST ${plural}`);
  }
}

const ref = { name: 'one', namespace: 'default' };

describe('a replica that converts', () => {
  let caches: Informers;
  afterEach(() => caches.stop());

  function startCaches(server: QuietServer): void {
    const logger = createLogger({ level: 'silent' });
    const kinds = [Stall, HelloApp];
    caches = new Informers(kinds, { client: server, metrics: new OperatorMetrics({ defaults: false }), logger });
    void caches.start();
  }

  it.each([
    ['Stall', 500, undefined],
    ['Stall', 429, undefined],
    ['Stall', 403, 'test.example.com/v1/Stall has not been listed yet'],
    ['HelloApp', 500, 'apps.anupam.com/v1/HelloApp has not been listed yet'],
    ['ConfigMap', 500, 'v1/ConfigMap has not been listed yet'],
  ])(
    'whose %s cannot be listed (%i) holds up the start only if the conversions cannot be why',
    async (kind, code, problem) => {
      const server = new FailingServer();
      server.failure = { kind, code };
      startCaches(server);
      await eventually(() => expect(caches.problem()).toContain('conversion webhook for shops failed'));
      await eventually(() => expect(caches.startProblem()?.split(':')[0]).toBe(problem));
      server.failure = undefined;
      await eventually(() => expect(caches.problem()).toBeUndefined());
      expect(caches.startProblem()).toBeUndefined();
    },
  );

  it('has not started as long as the server has not answered', async () => {
    const server = new FailingServer();
    server.silent = true;
    startCaches(server);
    await eventually(() => expect(server.asked).toContain('Stall'));
    expect(caches.startProblem()).toContain('test.example.com/v1/Stall has not been listed yet');
  });

  it('stays ready while the server has taken the next request for a list that failed, and sends nothing', async () => {
    const server = new FailingServer();
    server.failure = { kind: 'Stall', code: 500 };
    startCaches(server);
    await eventually(() => expect(caches.startProblem()).toBeUndefined());
    server.failure = undefined;
    server.sendsNothing = true;
    await eventually(() => expect(server.opened).toBe(true));
    expect(caches.problem()).toBe('test.example.com/v1/Stall has not been listed yet');
    expect(caches.startProblem()).toBeUndefined();
  });

  it('stays in its Service when a watch ends later', async () => {
    const server = new FailingServer();
    startCaches(server);
    await eventually(() => expect(caches.problem()).toBeUndefined());
    server.failure = { kind: 'Deployment', code: 403 };
    server.endWatches('Deployment');
    await eventually(() => expect(caches.problem()).toContain('Deployment is not being watched'));
    expect(caches.startProblem()).toBeUndefined();
  });
});

describe('an operator that converts', () => {
  const directory = new CertificateDirectory();
  afterAll(() => directory.remove());

  it('is ready while nobody converts, and goes on converting when it stops', async () => {
    const server = new FailingServer();
    server.failure = { kind: 'Stall', code: 500 };
    directory.renew('webhook');
    const stop = new AbortController();
    let [health, webhook] = [0, 0];
    const running = runOperator({
      client: server,
      kinds: [Stall],
      logger: createLogger({ level: 'silent' }),
      metrics: new OperatorMetrics({ defaults: false }),
      signal: stop.signal,
      onLost: () => undefined,
      health: { port: 0, host: '127.0.0.1' },
      onListening: (port) => (health = port),
      webhook: { port: 0, host: '127.0.0.1', certDir: directory.path, onListening: (port) => (webhook = port) },
    });
    try {
      const readyz = (): Promise<Response> => fetch(`http://127.0.0.1:${health}/readyz?verbose`);
      await eventually(async () => expect((await readyz()).status).toBe(200));
      expect(await (await readyz()).text()).toMatch(
        /^\[\+\]caches ok\n\[\+\]conversion ok\n\[!\]watches failed, which does not count: test\.example\.com\/v1\/Stall .*\nreadyz check passed\n$/,
      );
      stop.abort();
      await eventually(() => expect(readyz()).rejects.toThrow('fetch failed'));
      const objects = [{ apiVersion: 'test.example.com/v1beta1', kind: 'Stall', metadata: ref, spec: { chairs: '7' } }];
      const request = { uid: 'u', desiredAPIVersion: 'test.example.com/v1', objects };
      const review = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', request };
      const { certificate: ca } = directory.authority;
      const answer = await ask({ port: webhook, ca, type: 'application/json', body: JSON.stringify(review) });
      expect(answer.body).toContain('"seats":7');
    } finally {
      stop.abort();
      await running;
    }
  });
});
