import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { Harness, ref } from './harness';

const { Deployment } = owned;
const autoscaled = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'a', autoscaling: true };
const another = { apiVersion: 'example.com/v1', kind: 'Other', name: 'other', uid: 'other', controller: true };

/** A change whose child has to be read first: what the cache says of it was judged, and may be true no more. */
describe('an apply that reads the child first', () => {
  async function respecced(): Promise<Harness> {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    harness.respec('web', { image: 'b' });
    harness.server.eventDelivery = 'held';
    harness.server.takeRequests();
    return harness;
  }

  it('does not enter an owner again that the garbage collector has taken out unheard', async () => {
    const harness = await respecced();
    harness.server.remove(HelloApp.type, ref('web'), 'Orphan');
    harness.server.collectGarbage();
    await expect(reconcileObject(harness.context, ref('web'))).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.live(Deployment, 'web').metadata.ownerReferences).toEqual([]);
    harness.server.collectGarbage();
    expect(harness.server.peek(Deployment, ref('web'))).toBeDefined();
  });

  it('does not either for a child with a seeded field, which is read before every change', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('m', autoscaled);
    await harness.reconcile('m');
    for (const image of ['b', 'c']) {
      harness.respec('m', { image });
      await harness.reconcile('m');
    }
    harness.respec('m', { image: 'd' });
    harness.server.eventDelivery = 'held';
    harness.server.remove(MicroServiceDeploy.type, ref('m'), 'Orphan');
    harness.server.collectGarbage();
    await expect(reconcileObject(harness.context, ref('m'))).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.live(Deployment, 'shop-1').metadata.ownerReferences).toEqual([]);
  });

  it('does not write over what another controller has taken over unheard', async () => {
    const harness = await respecced();
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: {}, ownerReferences: [another] },
    }));
    await expect(reconcileObject(harness.context, ref('web'))).rejects.toMatchObject({
      message: 'deployments "web" changed hands while it was being written',
    });
    expect(harness.live(Deployment, 'web').spec).toHaveProperty('template.spec.containers', [
      expect.objectContaining({ image: 'a' }),
    ]);
  });

  it('goes on when somebody has changed something else', async () => {
    const harness = await respecced();
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, labels: { ...live.metadata.labels, other: 'yes' } },
    }));
    await reconcileObject(harness.context, ref('web'));
    expect(harness.live(Deployment, 'web').spec).toHaveProperty('template.spec.containers', [
      expect.objectContaining({ image: 'b' }),
    ]);
    expect(harness.live(Deployment, 'web').metadata.labels).toMatchObject({ other: 'yes' });
  });
});
