import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { Foo, MicroServiceDeploy } from '../../../constructs/kinds';
import { ref } from '../reconcile/harness';
import { apiError } from '../../../testing/api-server/requests';
import { RunningController } from './running-controller';

const { Deployment, Service } = owned;
const CONSENT = { 'kindred.dev/adopt': 'true' };
const immutable = apiError(422, 'Invalid', 'spec.x: Invalid value: "y": field is immutable', [
  { reason: 'FieldValueInvalid', field: 'spec.x', message: 'Invalid value: "y": field is immutable' },
]);

describe("somebody else's object that was to be adopted, and that the server would not have changed", () => {
  let running: RunningController;

  afterEach(async () => {
    expect(await running.stop()).toEqual({ abandoned: [] });
  });

  async function run(kind: AnyKind, type: ResourceType, stranger: KubeObject): Promise<void> {
    running = new RunningController(kind);
    running.start();
    await running.server.create(type, stranger, { fieldManager: 'kubectl' });
    const { uid } = running.live(type, stranger.metadata.name).metadata;
    running.server.before = ({ verb, type: written }) => {
      const standing = running.server.peek(type, stranger.metadata);
      if (verb !== 'POST' && written === type && standing?.metadata.uid === uid) throw immutable;
    };
  }

  it('wakes with its deletion who waits for its name', async () => {
    const template = { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const metadata = { ...ref('taken'), annotations: CONSENT };
    const stranger = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { template } };
    await run(Foo, Deployment, stranger);
    await running.add('foo', { deploymentName: 'taken' });
    await running.settle();
    expect(running.conditions('foo')).toEqual(['Ready=False ErrInvalidChild', 'Stalled=True ErrInvalidChild']);
    running.server.remove(Deployment, ref('taken'));
    await running.settle();
    expect(running.live(Deployment, 'taken').metadata.ownerReferences).toMatchObject([{ name: 'foo' }]);
  });

  it('wakes with its deletion the key that it was to be shared under', async () => {
    const instance = { msName: 'shop', fullName: 'shop-a', version: '1', path: 'v1', image: 'i' };
    await run(MicroServiceDeploy, Service, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...ref('shop'), annotations: CONSENT },
      spec: { selector: { app: 'other' } },
    });
    await running.add('a', instance);
    await running.settle();
    expect(running.conditions('a')[0]).toBe('Ready=False ErrInvalidChild');
    expect(JSON.stringify(running.live(MicroServiceDeploy.type, 'a'))).toContain(
      '`kubectl delete services shop --namespace=default`',
    );
    running.server.remove(Service, ref('shop'));
    await running.settle();
    expect(running.live(Service, 'shop').metadata.ownerReferences).toMatchObject([{ name: 'a' }]);
  });
});

describe("somebody else's object", () => {
  it('is taken over at once when whoever may edit it agrees', async () => {
    const running = new RunningController(Foo);
    running.start();
    const template = { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const stranger = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: ref('taken'), spec: { template } };
    await running.server.create(Deployment, stranger, { fieldManager: 'kubectl' });
    await running.add('foo', { deploymentName: 'taken' }, { annotations: CONSENT });
    await running.settle();
    expect(running.conditions('foo')[0]).toBe('Ready=False ErrResourceExists');
    running.server.edit(Deployment, ref('taken'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations: CONSENT },
    }));
    await running.settle();
    expect(running.live(Deployment, 'taken').metadata.ownerReferences).toMatchObject([{ name: 'foo' }]);
    expect(await running.stop()).toEqual({ abandoned: [] });
  });
});
