import type { ApiClient } from '../../../operator/client/api-client';
import { staticAccess } from '../../../operator/client/cluster-access';
import { createApiClient } from '../../../operator/client/http-api-client';
import { LeaderElector } from '../../../operator/leader/leader-election';
import { createLogger } from '../../../operator/process/logger';
import { eventually } from '../support/eventually';
import { FakeApiServer, json, status } from '../support/fake-api-server';
import { CONFIG_MAPS } from '../support/fake-cluster';

describe('the Lease, while a server takes long over all else', () => {
  /** Leases are answered at once; anything else is never answered. */
  const server = new FakeApiServer(({ method, path, body }, response) => {
    if (!path.includes('/leases')) return;
    if (method === 'GET' && lease === undefined) {
      status(response, 404, 'NotFound');
      return;
    }
    if (method !== 'GET') {
      lease = JSON.parse(body) as typeof lease;
      renewals++;
    }
    json(response, { ...lease, metadata: { ...lease?.metadata, resourceVersion: String(renewals) } });
  });
  let lease: { readonly metadata: object; readonly spec: { readonly holderIdentity: string } } | undefined;
  let renewals = 0;
  let client: ApiClient;
  let elector: LeaderElector;

  beforeEach(async () => {
    client = createApiClient(staticAccess(await server.listen()), { maxConnections: 2 });
  });

  afterEach(async () => {
    await elector.stop({ release: false });
    await client.close();
    await server.close();
  });

  it('is taken, renewed and given up', async () => {
    const slow = [1, 2, 3, 4].map((i) =>
      client.get(CONFIG_MAPS, { namespace: 'a', name: `slow-${String(i)}` }).catch(() => undefined),
    );
    await eventually(() => expect(server.open).toBe(2));
    const onLost = jest.fn();
    elector = new LeaderElector({
      ...{ client, leaseName: 'l', namespace: 'a', identity: 'me', logger: createLogger({ level: 'silent' }) },
      ...{ leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 100 },
      ...{ onElected: () => undefined, onLost },
    });
    elector.start();
    await eventually(() => expect(renewals).toBeGreaterThan(3));
    expect(elector.isLeaderNow()).toBe(true);
    await elector.stop();
    expect(lease?.spec.holderIdentity).toBe('');
    expect(onLost).not.toHaveBeenCalled();
    expect(server.open).toBe(2);
    await client.close();
    expect(await Promise.all(slow)).toHaveLength(4);
  });
});
