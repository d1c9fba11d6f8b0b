import { once } from 'node:events';
import { HelloApp } from '../../constructs/kinds';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import type { ListOptions, ListPage, WatchEvent, WatchOptions } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { Informers } from '../../operator/informers';
import { OperatorMetrics } from '../../operator/metrics/operator-metrics';
import { createLogger } from '../../operator/process/logger';
import { Stall } from '../constructs/kind/versions-kind';
import { eventually } from './support/eventually';
import { PartialServer, type QuietServer } from './support/quiet-server';

const { Deployment } = owned;

describe('a replica that converts', () => {
  /** Its lists of one type fail so. */
  class FailingServer extends PartialServer {
    failure: { readonly kind: string; readonly code: number } | undefined;
    silent = false;

    override async list(type: ResourceType, options?: ListOptions): Promise<ListPage> {
      await this.refuse(type, options?.signal);
      return super.list(type, options);
    }

    override async *watch(type: ResourceType = Deployment, options?: WatchOptions): AsyncIterable<WatchEvent> {
      await this.refuse(type, options?.signal);
      yield* super.watch(type, options);
    }

    private async refuse({ kind, plural }: ResourceType, signal?: AbortSignal): Promise<void> {
      if (this.silent) await once(signal!, 'abort');
      if (kind !== this.failure?.kind) return;
      const message = 'conversion webhook for shops failed';
      throw new ApiError({ code: this.failure.code, reason: 'no', message, causes: [] }, `LIST ${plural}`);
    }
  }

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

  it('has not started as long as the server has not answered', () => {
    const server = new FailingServer();
    server.silent = true;
    startCaches(server);
    expect(caches.startProblem()).toContain('test.example.com/v1/Stall has not been listed yet');
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
