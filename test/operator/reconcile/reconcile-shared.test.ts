import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { reconcileShared } from '../../../operator/reconcile/reconcile-shared';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, NAMESPACE, ref } from './harness';

const { Service, ServiceAccount } = owned;
const spec = { msName: 'shop', version: '1', path: 'v1', image: 'i' };

function stranger(name: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE },
    spec: { selector: { x: 'y' } },
  };
}

describe('reconcileShared', () => {
  let harness: Harness;

  function owners(): readonly string[] {
    return (harness.live(Service, 'shop').metadata.ownerReferences ?? []).map(({ name }) => name);
  }

  /** A person who may edit the Service lets it be taken over. */
  function agree(): void {
    harness.server.edit(Service, ref('shop'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: { 'kindred.dev/adopt': 'true' } },
    }));
  }

  beforeEach(async () => {
    harness = new Harness(MicroServiceDeploy);
    await harness.add('a', { ...spec, fullName: 'shop-a' });
  });

  it('creates both children under the key, held by the object without being controlled', async () => {
    const { result, writes } = await harness.reconcileShared('shop');
    expect(writes).toEqual(['POST ServiceAccount shop (kindred)', 'POST Service shop (kindred)']);
    expect(result).toMatchObject({ state: { state: 'applied' }, retry: false, awaited: [] });
    const { uid } = harness.object('a').metadata;
    for (const type of [Service, ServiceAccount]) {
      expect(harness.live(type, 'shop').metadata).toMatchObject({
        annotations: { 'kindred.dev/shared-key': 'microservicedeploys.custom.ops/service/shop' },
        ownerReferences: [{ apiVersion: 'custom.ops/v1', kind: 'MicroServiceDeploy', name: 'a', uid }],
      });
      expect(harness.live(type, 'shop').metadata.ownerReferences?.[0]).not.toHaveProperty('controller');
      expect(harness.live(type, 'shop').metadata.annotations).not.toHaveProperty('kindred.dev/owner-uid');
    }
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
  });

  it('adds a second owner, and takes out one that goes, without touching the body', async () => {
    await harness.reconcileShared('shop');
    const body = harness.live(Service, 'shop').spec;
    await harness.add('b', { ...spec, fullName: 'shop-b' });
    await harness.reconcileShared('shop');
    expect(owners()).toEqual(['a', 'b']);
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    await harness.reconcileShared('shop');
    expect(owners()).toEqual(['b']);
    expect(harness.live(Service, 'shop').spec).toEqual(body);
  });

  it('no longer counts an object that is only being deleted', async () => {
    await harness.add('b', { ...spec, fullName: 'shop-b' }, { finalizers: ['example.com/x'] });
    await harness.reconcileShared('shop');
    expect(owners()).toEqual(['a', 'b']);
    harness.server.remove(MicroServiceDeploy.type, ref('b'));
    await harness.reconcileShared('shop');
    expect(owners()).toEqual(['a']);
  });

  it('deletes the children with their last owner, by uid and resourceVersion', async () => {
    await harness.reconcileShared('shop');
    const { uid, resourceVersion } = harness.live(Service, 'shop').metadata;
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    const { result, writes } = await harness.reconcileShared('shop');
    expect(writes).toEqual(['DELETE ServiceAccount shop (Background)', 'DELETE Service shop (Background)']);
    expect(harness.server.requests[2]?.options).toMatchObject({ uid, resourceVersion });
    expect(result.state).toBeUndefined();
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
  });

  it('does not delete what somebody began to hold meanwhile', async () => {
    await harness.reconcileShared('shop');
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    harness.server.eventDelivery = 'held';
    harness.server.edit(ServiceAccount, ref('shop'), (live) => ({ ...live, secrets: [] }));
    await expect(harness.reconcileShared('shop')).rejects.toMatchObject({ reason: 'Conflict' });
    expect(harness.live(ServiceAccount, 'shop')).toBeDefined();
  });

  it('leaves the children standing when the last owner goes with --cascade=orphan, before and after', async () => {
    await harness.reconcileShared('shop');
    harness.server.remove(MicroServiceDeploy.type, ref('a'), 'Orphan');
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
    harness.server.collectGarbage();
    expect(harness.server.peek(MicroServiceDeploy.type, ref('a'))).toBeUndefined();
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
    expect(owners()).toEqual([]);
  });

  it('refuses a stranger, and tells every object that names the key', async () => {
    await harness.add('b', { ...spec, fullName: 'shop-b' });
    await harness.server.create(Service, stranger('shop'), { fieldManager: 'kubectl' });
    const { result, writes } = await harness.reconcileShared('shop');
    const message = 'Service default/shop: Resource "shop" already exists and is not managed by MicroServiceDeploy';
    expect(writes).toEqual(['POST ServiceAccount shop (kindred)']);
    expect(result).toMatchObject({
      state: { state: 'failed', readiness: { state: 'stalled', reason: 'ErrResourceExists', message } },
      retry: false,
      awaited: [{ type: { kind: 'Service' }, ref: ref('shop') }],
    });
    expect(harness.events.map(({ regarding, reason }) => `${regarding} ${reason}`)).toEqual([
      'a ErrResourceExists',
      'b ErrResourceExists',
    ]);
    harness.annotate('b', { 'kindred.dev/adopt': 'true' });
    expect((await harness.reconcileShared('shop')).result.state).toMatchObject({
      state: 'failed',
      readiness: { message: expect.stringContaining('kubectl annotate services shop --namespace=default') as string },
    });
    expect(owners()).toEqual([]);
    agree();
    expect((await harness.reconcileShared('shop')).result.state).toEqual({ state: 'applied' });
    expect(owners()).toEqual(['a', 'b']);
  });

  it('goes on holding what was taken over while the consent stood on an object, and deletes it with the last', async () => {
    await harness.server.create(Service, stranger('shop'), { fieldManager: 'kubectl' });
    agree();
    await harness.reconcileShared('shop');
    harness.server.edit(Service, ref('shop'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: { ...live.metadata.annotations, 'kindred.dev/adopt': 'false' } },
    }));
    harness.annotate('a', { 'kindred.dev/adopt': 'true' });
    expect((await harness.reconcileShared('shop')).result.state).toEqual({ state: 'applied' });
    harness.annotate('a', {});
    expect((await harness.reconcileShared('shop')).writes).toEqual([]);
    expect(owners()).toEqual(['a']);
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    expect((await harness.reconcileShared('shop')).writes).toContain('DELETE Service shop (Background)');
  });

  it('does not take what an object controls, and never deletes a stranger', async () => {
    const controlled = {
      apiVersion: 'custom.ops/v1',
      kind: 'MicroServiceDeploy',
      name: 'z',
      uid: 'z',
      controller: true,
    };
    const body = stranger('shop');
    await harness.server.create(
      Service,
      { ...body, metadata: { ...body.metadata, ownerReferences: [controlled] } },
      { fieldManager: 'x' },
    );
    expect((await harness.reconcileShared('shop')).result.state).toMatchObject({ state: 'failed' });
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    expect((await harness.reconcileShared('shop')).writes).toEqual(['DELETE ServiceAccount shop (Background)']);
  });

  it('puts drift right', async () => {
    await harness.reconcileShared('shop');
    harness.server.edit(Service, ref('shop'), (live) => ({
      ...live,
      spec: { ...(live.spec as object), selector: { app: 'x' } },
    }));
    await harness.reconcileShared('shop');
    expect(harness.live(Service, 'shop')).toMatchObject({ spec: { selector: { app: 'shop' } } });
  });

  it('goes on with the other child when one fails, and says whether to try again', async () => {
    harness.server.before = ({ verb, type }) => {
      if (verb === 'POST' && type.kind === 'ServiceAccount') throw apiError(403, 'Forbidden', 'no');
    };
    const { result } = await harness.reconcileShared('shop');
    expect(result).toMatchObject({
      state: {
        state: 'failed',
        readiness: { state: 'failing', reason: 'ErrForbidden', message: 'ServiceAccount "shop": no' },
      },
      retry: true,
    });
    expect(harness.live(Service, 'shop')).toBeDefined();
  });

  it('knows nothing of a group that the kind does not have', async () => {
    const target = { group: 'gone', namespace: NAMESPACE, key: 'k', objects: [] };
    expect(await reconcileShared(harness.context, target)).toMatchObject({ state: undefined, retry: false });
  });

  it('tells that children cannot be rendered, and tries again for nobody', async () => {
    const kind = {
      ...MicroServiceDeploy,
      shared: MicroServiceDeploy.shared.map((group) => ({
        ...group,
        children: () => {
          throw new Error('no such key');
        },
      })),
    };
    const context = { ...harness.context, kind };
    const target = { group: 'service', namespace: NAMESPACE, key: 'shop' };
    const failed = { reason: 'ErrRender', message: expect.stringContaining('no such key') as string };
    const objects = harness.objects.list().map(({ object }) => object);
    expect(await reconcileShared(context, { ...target, objects })).toMatchObject({
      state: { state: 'failed', readiness: failed },
      retry: false,
      failed,
    });
    expect(await reconcileShared(context, { ...target, objects: [] })).toMatchObject({
      state: undefined,
      retry: false,
      failed,
    });
  });

  it('is no contest when ever more objects begin to share it', async () => {
    for (const name of ['c', 'd', 'e', 'f', 'g', 'h', 'i']) {
      await harness.add(name, { ...spec, fullName: `shop-${name}` });
      expect((await harness.reconcileShared('shop')).result.state).toEqual({ state: 'applied' });
    }
    expect(owners()).toEqual(['a', 'c', 'd', 'e', 'f', 'g', 'h', 'i']);
  });

  it('keeps the children of an object whose spec does not fit, of which nobody knows which key it names', async () => {
    await harness.reconcileShared('shop');
    harness.respec('a', { msName: 7 });
    const target = { group: 'service', namespace: NAMESPACE, key: 'shop', objects: [] };
    expect(await reconcileShared(harness.context, target)).toMatchObject({ state: { state: 'applied' } });
    expect(owners()).toEqual(['a']);
    await harness.add('b', { ...spec, fullName: 'shop-b' });
    const { object } = harness.objects.get(ref('b')) ?? {};
    await reconcileShared(harness.context, { ...target, objects: object === undefined ? [] : [object] });
    expect(owners()).toEqual(['a', 'b']);
    harness.server.remove(MicroServiceDeploy.type, ref('a'));
    await reconcileShared(harness.context, { ...target, objects: object === undefined ? [] : [object] });
    expect(owners()).toEqual(['b']);
  });

  describe('with paused objects', () => {
    const paused = { 'kindred.dev/paused': 'true' };

    function editByHand(): void {
      harness.server.edit(Service, ref('shop'), (live) => ({
        ...live,
        spec: { ...(live.spec as object), selector: { app: 'by-hand' } },
      }));
    }

    it('leaves everything as it is while all are paused, and the state as it was', async () => {
      await harness.add('b', { ...spec, fullName: 'shop-b' });
      await harness.reconcileShared('shop');
      harness.annotate('a', paused);
      harness.annotate('b', paused);
      editByHand();
      const readiness = { state: 'failing', reason: 'ErrForbidden', message: 'no' } as const;
      for (const state of [{ state: 'applied' }, { state: 'failed', readiness }] as const) {
        harness.sharedState = (id) => (id === 'service/default/shop' ? state : undefined);
        const { result, writes } = await harness.reconcileShared('shop');
        expect([result, writes]).toEqual([{ state, retry: false, awaited: [] }, []]);
      }
    });

    it('does not take for applied what it has never looked at', async () => {
      harness.sharedState = () => undefined;
      harness.annotate('a', paused);
      const { result, writes } = await harness.reconcileShared('shop');
      expect([result.state, writes]).toEqual([undefined, []]);
    });

    it('goes on, with all of them as owners, while one is not', async () => {
      await harness.add('b', { ...spec, fullName: 'shop-b' });
      harness.annotate('a', paused);
      await harness.reconcileShared('shop');
      editByHand();
      await harness.reconcileShared('shop');
      expect(owners()).toEqual(['a', 'b']);
      expect(harness.live(Service, 'shop')).toMatchObject({ spec: { selector: { app: 'shop' } } });
    });

    it('does not count one that is being deleted, paused or not', async () => {
      await harness.add('b', { ...spec, fullName: 'shop-b' }, { finalizers: ['example.com/x'] });
      await harness.reconcileShared('shop');
      harness.annotate('a', paused);
      harness.server.remove(MicroServiceDeploy.type, ref('b'));
      expect((await harness.reconcileShared('shop')).writes).toEqual([]);
    });

    it('still deletes the children with the last of them', async () => {
      await harness.reconcileShared('shop');
      harness.annotate('a', paused);
      harness.server.remove(MicroServiceDeploy.type, ref('a'));
      expect((await harness.reconcileShared('shop')).writes).toHaveLength(2);
    });
  });
});
