import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { reconcileShared } from '../../../operator/reconcile/reconcile-shared';
import { Harness, NAMESPACE, ref } from './harness';

const { Service, ServiceAccount } = owned;
const spec = { msName: 'shop', version: '1', path: 'v1', image: 'i' };

describe('the owners of a shared child', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(MicroServiceDeploy);
    await add('a');
    await harness.reconcileShared('shop');
  });

  async function add(name: string): Promise<void> {
    await harness.add(name, { ...spec, fullName: `shop-${name}` });
  }

  function owners(): readonly string[] {
    return (harness.live(Service, 'shop').metadata.ownerReferences ?? []).map(({ name }) => name);
  }

  /** From now on the watch of the kind is behind, that of its children is not. */
  function holdKind(): void {
    harness.objects.applyChange = () => undefined;
    harness.objects.applyDeletion = () => undefined;
  }

  function requests(): readonly string[] {
    return harness.server.requests.map(({ verb, type }) => `${verb} ${type.kind}`);
  }

  it('are not entered again when they go with --cascade=orphan unheard', async () => {
    await add('b');
    await harness.reconcileShared('shop');
    holdKind();
    harness.server.remove(MicroServiceDeploy.type, ref('a'), 'Orphan');
    harness.server.collectGarbage();
    await expect(harness.reconcileShared('shop')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(owners()).toEqual(['b']);
    harness.server.remove(MicroServiceDeploy.type, ref('b'), 'Orphan');
    harness.server.collectGarbage();
    harness.server.collectGarbage();
    expect(harness.server.peek(Service, ref('shop'))).toBeDefined();
  });

  it('cost one look when one joins, for all children of the key', async () => {
    await add('b');
    await harness.reconcileShared('shop');
    expect(requests().filter((request) => request.startsWith('LIST'))).toEqual(['LIST MicroServiceDeploy']);
    await harness.reconcileShared('shop');
    expect(requests()).toEqual([]);
  });

  it('cost no more when many join at once', async () => {
    const names = ['b', 'c', 'd', 'e', 'f', 'g'];
    for (const name of names) await add(name);
    await harness.reconcileShared('shop');
    expect(requests().filter((request) => request.startsWith('LIST'))).toEqual(['LIST MicroServiceDeploy']);
    expect(owners()).toEqual(['a', ...names]);
  });

  it('make the child ours, whoever has taken its annotations away', async () => {
    harness.server.edit(Service, ref('shop'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: {} },
    }));
    const { result } = await harness.reconcileShared('shop');
    expect(result.state).toEqual({ state: 'applied' });
    expect(harness.live(Service, 'shop').metadata.annotations).toHaveProperty(['kindred.dev/shared-key']);
  });

  describe('when none is left', () => {
    const nobody = { group: 'service', namespace: NAMESPACE, key: 'shop', objects: [] };

    it('let the child go by one look for all children of the key', async () => {
      harness.server.remove(MicroServiceDeploy.type, ref('a'));
      await harness.reconcileShared('shop');
      expect(requests()).toEqual(['LIST MicroServiceDeploy', 'DELETE ServiceAccount', 'DELETE Service']);
    });

    it('keep it if one stands on the server that the cache has never held', async () => {
      // As for a replica that has just become leader.
      const { object } = harness.objects.get(ref('a')) ?? {};
      harness.objects.applyDeletion(object as KubeObject);
      await expect(reconcileShared(harness.context, nobody)).rejects.toMatchObject({
        message: 'microservicedeploys "a" stands, and no event has told of it yet',
      });
      expect(harness.server.peek(Service, ref('shop'))).toBeDefined();
    });

    it('need no look if they are known to name another key', async () => {
      harness.respec('a', { msName: 'other' });
      harness.server.takeRequests();
      await reconcileShared(harness.context, nobody);
      expect(requests()).toEqual(['DELETE ServiceAccount', 'DELETE Service']);
    });

    it('leave what bears no annotation of ours', async () => {
      harness.server.edit(ServiceAccount, ref('shop'), (live) => ({
        ...live,
        metadata: { ...live.metadata, annotations: {} },
      }));
      harness.server.remove(MicroServiceDeploy.type, ref('a'));
      const { writes } = await harness.reconcileShared('shop');
      expect(writes).toEqual(['DELETE Service shop (Background)']);
    });
  });
});
