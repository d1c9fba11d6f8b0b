import { owned } from '../../../constructs/kube/resource-type';
import { DemoMicroService, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { TransportError } from '../../../operator/client/errors';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { RunningController } from '../controller/running-controller';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref } from './harness';

const { ConfigMap, Deployment, Service } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };
const quota = apiError(403, 'Forbidden', 'deployments.apps "shop-1" is forbidden: exceeded quota');
const invalid = apiError(422, 'Invalid', 'Deployment.apps "shop-1" is invalid: spec.template: too large');

describe('a child that fails', () => {
  let harness: Harness;
  let refusal: Error | undefined;

  beforeEach(async () => {
    harness = new Harness(MicroServiceDeploy);
    refusal = quota;
    harness.server.before = ({ verb, type }) => {
      if (verb === 'POST' && type === Deployment && refusal !== undefined) throw refusal;
    };
    await harness.add('m', spec);
  });

  it('does not hold back the others', async () => {
    await harness.reconcile('m');
    expect(harness.live(ConfigMap, 'shop-1')).toBeDefined();
    expect(harness.live(Service, 'shop-1')).toBeDefined();
  });

  it("is tried again when time may help, with the server's words in Ready and an event", async () => {
    const { next } = await harness.reconcile('m');
    const message = `Deployment "shop-1": ${quota.message}`;
    expect(next).toEqual({ action: 'retry', failed: { reason: 'ErrForbidden', message }, awaited: [] });
    expect(harness.conditions('m')).toEqual(['Ready=False ErrForbidden', 'Reconciling=True ErrForbidden']);
    expect(harness.events).toEqual([
      { regarding: 'm', type: 'Warning', action: 'Apply', reason: 'ErrForbidden', message },
    ]);
    refusal = undefined;
    expect((await harness.reconcile('m')).next.action).toBe('wait');
  });

  it('is given up until something changes when the server finds it invalid', async () => {
    refusal = invalid;
    const { next } = await harness.reconcile('m');
    expect(next).toMatchObject({ action: 'wait', failed: { reason: 'ErrInvalidChild' } });
    expect(harness.conditions('m')).toEqual(['Ready=False ErrInvalidChild', 'Stalled=True ErrInvalidChild']);
  });

  it('holds back the pruning', async () => {
    refusal = undefined;
    await harness.reconcile('m');
    refusal = quota;
    harness.respec('m', { fullName: 'shop-2' });
    const { writes } = await harness.reconcile('m');
    expect(writes.filter((write) => write.startsWith('DELETE'))).toEqual([]);
    refusal = undefined;
    expect((await harness.reconcile('m')).writes.filter((write) => write.startsWith('DELETE'))).toEqual([
      'DELETE ConfigMap shop-1 (Background)',
      'DELETE Deployment shop-1 (Background)',
      'DELETE Service shop-1 (Background)',
    ]);
  });

  it('writes no second status and event loop of its own while it keeps failing', async () => {
    await harness.reconcile('m');
    expect((await harness.reconcile('m')).writes).toEqual(['POST Deployment shop-1 (kindred)']);
  });

  it.each([
    ['the cache was behind', apiError(409, 'Conflict', 'the object has been modified')],
    ['the server is away', new TransportError('connect ECONNREFUSED', 'POST deployments')],
    ['another process leads', new NotLeaderError('refused to write')],
  ])('is no failure when %s: tried again without a word', async (_, error) => {
    refusal = error;
    await expect(harness.reconcile('m')).rejects.toBe(error);
    expect(harness.events).toEqual([]);
    expect(harness.server.writes).not.toContain('APPLY MicroServiceDeploy m/status (kindred)');
  });

  it('waits for its shared children before it writes anything', async () => {
    harness.sharedState = () => undefined;
    expect(await harness.reconcile('m')).toEqual({ next: { action: 'wait' }, writes: [] });
  });

  it('shows what its shared children lack', async () => {
    refusal = undefined;
    const readiness = { state: 'stalled' as const, reason: 'ErrResourceExists', message: 'Service "shop" is taken' };
    harness.sharedState = () => ({ state: 'failed', readiness });
    await harness.reconcile('m');
    expect([...harness.conditions('m'), harness.message('m')]).toEqual([
      'Ready=False ErrResourceExists',
      'Stalled=True ErrResourceExists',
      'Service "shop" is taken',
    ]);
  });
});

describe('a prune that fails', () => {
  it('shows in Ready and is tried again', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('m', { ...spec, config: 'x' });
    await harness.reconcile('m');
    harness.server.before = ({ verb }) => {
      if (verb === 'DELETE') throw apiError(403, 'Forbidden', 'configmaps is forbidden');
    };
    harness.respec('m', { config: undefined, configSecretRef: { name: 's', key: 'k' } });
    expect((await harness.reconcile('m')).next).toMatchObject({ action: 'retry', failed: { reason: 'ErrForbidden' } });
    expect(harness.conditions('m')[0]).toBe('Ready=False ErrForbidden');
  });
});

describe('a clean-up that fails', () => {
  it('keeps the finalizer, says why in Ready and an event, and is tried again', async () => {
    const harness = new Harness(DemoMicroService);
    await harness.add('dms', { image: 'i' });
    await harness.reconcile('dms');
    harness.server.remove(DemoMicroService.type, ref('dms'));
    harness.server.before = ({ verb }) => {
      if (verb === 'DELETE')
        throw apiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
    };
    const { next, writes } = await harness.reconcile('dms');
    expect(next).toMatchObject({ action: 'retry', failed: { reason: 'ErrCleanup' } });
    expect(writes).toEqual(['DELETE Deployment dms (Foreground)', 'APPLY DemoMicroService dms/status (kindred)']);
    expect(harness.message('dms')).toBe(
      'The clean-up failed and is tried again: the server does not allow this method on the requested resource',
    );
    expect(harness.events).toMatchObject([{ type: 'Warning', action: 'Delete', reason: 'ErrCleanup' }]);
    expect(harness.object('dms').metadata.finalizers).toHaveLength(1);
    expect((await harness.reconcile('dms')).writes).toEqual(['DELETE Deployment dms (Foreground)']);
  });

  it.each([
    ['the cache was behind', apiError(409, 'Conflict', 'uid')],
    ['the server is away', new TransportError('connect ECONNREFUSED', 'DELETE deployments')],
  ])('is no failure when %s: tried again without a word', async (_, error) => {
    const harness = new Harness(DemoMicroService);
    await harness.add('dms', { image: 'i' });
    await harness.reconcile('dms');
    harness.server.remove(DemoMicroService.type, ref('dms'));
    harness.server.before = ({ verb }) => {
      if (verb === 'DELETE') throw error;
    };
    await expect(harness.reconcile('dms')).rejects.toBe(error);
    expect(harness.events).toEqual([]);
    expect(harness.server.writes).toEqual(['DELETE Deployment dms (Foreground)']);
  });

  it('goes on within half a minute of the end of an outage, however long that was', async () => {
    const running = new RunningController(DemoMicroService);
    running.start();
    const { clock, server } = running;
    await running.add('dms', { image: 'i' });
    await running.settle();
    let isAway = true;
    server.before = ({ verb }) => {
      if (isAway && verb === 'DELETE') throw new TransportError('connect ECONNREFUSED', 'DELETE deployments');
    };
    server.remove(DemoMicroService.type, ref('dms'));
    for (let seconds = 0; seconds < 660; seconds += 5) {
      await running.settle();
      await clock.advance(5000);
    }
    await running.settle();
    isAway = false;
    await clock.advance(30_000);
    await running.settle();
    await running.stop();
    expect(server.peek(Deployment, ref('dms'))?.metadata.deletionTimestamp).toBeDefined();
    expect(running.queue.failures('object:default/dms')).toBe(0);
    expect(running.complaints()).toEqual([]);
  });
});

describe('a child that was replaced between a look at it and the write', () => {
  it('is no failure: the cache was behind', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
    harness.respec('web', { image: 'j' });
    harness.server.before = async ({ verb }) => {
      if (verb !== 'PATCH') return;
      harness.server.before = () => undefined;
      const { apiVersion, kind, metadata, spec: old } = harness.live(Deployment, 'web');
      harness.server.eventDelivery = 'held';
      harness.server.remove(Deployment, ref('web'));
      const { name, namespace } = metadata;
      await harness.server.create(
        Deployment,
        { apiVersion, kind, metadata: { name, namespace }, spec: old },
        {
          fieldManager: 'x',
        },
      );
    };
    await expect(harness.reconcile('web')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.events).toEqual([]);
  });
});
