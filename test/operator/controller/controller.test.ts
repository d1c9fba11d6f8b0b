import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, OwnerReference } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { Foo, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { TransportError } from '../../../operator/client/errors';
import { NAMESPACE, ref, rolledOut } from '../reconcile/harness';
import { apiError } from '../../../testing/api-server/requests';
import { RunningController } from './running-controller';

const { ConfigMap, Deployment, Service, ServiceAccount } = owned;
const instance = { msName: 'shop', fullName: 'shop-a', version: '1', path: 'v1', image: 'i' };

let running: RunningController;

function run(kind: AnyKind): RunningController {
  running = new RunningController(kind);
  running.start();
  return running;
}

afterEach(async () => {
  expect(await running.stop()).toEqual({ abandoned: [] });
});

function stranger(name: string): KubeObject {
  const template = { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: NAMESPACE }, spec: { template } };
}

/** The Service of `shop` as an object holds it, with a selector that is not the kind's. */
function held(holder: OwnerReference): KubeObject {
  const annotations = { 'kindred.dev/shared-key': 'microservicedeploys.custom.ops/service/shop' };
  const metadata = { ...ref('shop'), annotations, ownerReferences: [holder] };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'by-hand' } } };
}

describe('a controller', () => {
  it('creates with one POST and one status write, in one reconcile, and is not woken by what it wrote', async () => {
    const { server, results } = run(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    expect(server.writes).toEqual(['POST Deployment web (kindred)', 'APPLY HelloApp web/status (kindred)']);
    expect(results).toEqual(['success']);
  });

  it('follows the roll-out of its child to Ready', async () => {
    const { server } = run(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    server.setStatus(Deployment, ref('web'), rolledOut(1));
    await running.settle();
    expect(running.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('reconciles when the reconcile-at annotation changes, writing nothing when nothing differs', async () => {
    const { server, results } = run(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    server.takeRequests();
    running.annotate('web', { 'kindred.dev/reconcile-at': 'now' });
    await running.settle();
    expect([server.writes, results]).toEqual([[], ['success', 'success']]);
  });

  it('brings deleted children back, and re-owns one whose reference was stripped', async () => {
    const { server } = run(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    server.edit(Deployment, ref('web'), (live) => ({ ...live, metadata: { ...live.metadata, ownerReferences: [] } }));
    await running.settle();
    expect(running.live(Deployment, 'web').metadata.ownerReferences).toHaveLength(1);
    server.remove(Deployment, ref('web'));
    await running.settle();
    expect(running.live(Deployment, 'web')).toBeDefined();
  });

  it('is woken by the deletion of what takes its name', async () => {
    const { server } = run(Foo);
    await server.create(Deployment, stranger('taken'), { fieldManager: 'kubectl' });
    await running.add('foo', { deploymentName: 'taken' });
    await running.settle();
    expect(running.conditions('foo')[0]).toBe('Ready=False ErrResourceExists');
    expect(running.results).toEqual(['error', 'terminal']);
    server.remove(Deployment, ref('taken'));
    await running.settle();
    expect(running.live(Deployment, 'taken').metadata.ownerReferences).toMatchObject([{ name: 'foo' }]);
  });

  it('does not miss the deletion of what takes its name while it writes the refusal down', async () => {
    const { server } = run(Foo);
    await server.create(Deployment, stranger('taken'), { fieldManager: 'kubectl' });
    await running.settle();
    server.before = ({ verb }) => {
      if (verb !== 'APPLY') return;
      server.before = () => undefined;
      server.remove(Deployment, ref('taken'));
      server.deliverEvents();
    };
    await running.add('foo', { deploymentName: 'taken' });
    await running.settle();
    expect(running.live(Deployment, 'taken').metadata.ownerReferences).toMatchObject([{ name: 'foo' }]);
  });

  it('backs off from what fails, and starts anew when it succeeds', async () => {
    const { server, queue } = run(HelloApp);
    let posts = 0;
    server.before = ({ verb }) => {
      if (verb === 'POST' && ++posts > 1) throw apiError(403, 'Forbidden', 'quota');
    };
    await running.add('web', { image: 'i' });
    await running.settle();
    expect([queue.failures('object:default/web'), queue.delayedCount]).toEqual([1, 1]);
    expect(running.complaints()).toEqual(['not as the spec says']);
    await running.clock.advance(5);
    await running.settle();
    expect(queue.failures('object:default/web')).toBe(2);
    server.before = () => undefined;
    await running.clock.advance(10);
    await running.settle();
    expect([queue.failures('object:default/web'), queue.delayedCount]).toEqual([0, 0]);
    expect(running.results).toEqual(['error', 'error', 'success']);
  });

  it('tries again within half a minute of the end of an outage, however long that was', async () => {
    const { server, queue } = run(HelloApp);
    let away = true;
    server.before = ({ type, body }) => {
      if (away && type.kind === 'Deployment' && body !== undefined) throw new TransportError('no answer', 'POST');
    };
    await running.add('web', { image: 'i' });
    for (let seconds = 0; seconds < 600; seconds += 30) {
      await running.settle();
      await running.clock.advance(30_000);
    }
    await running.settle();
    expect(queue.failures('object:default/web')).toBeGreaterThan(15);
    away = false;
    await running.clock.advance(30_000);
    await running.settle();
    expect(server.writes).toContain('POST Deployment web (kindred)');
  });

  it('waits with what is hopeless until the spec changes', async () => {
    const { server, queue, results } = run(HelloApp);
    server.before = ({ verb, type, body }) => {
      if (verb !== 'POST' || type.kind !== 'Deployment') return;
      if (JSON.stringify(body).includes('too-bad')) throw apiError(422, 'Invalid', 'no');
    };
    await running.add('web', { image: 'too-bad' });
    await running.settle();
    expect([queue.delayedCount, results]).toEqual([0, ['error', 'terminal']]);
    running.respec('web', { image: 'good' });
    await running.settle();
    expect(running.conditions('web')[0]).toBe('Ready=False Progressing');
  });

  it('tries again without a complaint when the cache was behind', async () => {
    const { server, results } = run(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    server.before = ({ verb, type }) => {
      if (verb !== 'APPLY' || type.kind !== 'Deployment') return;
      server.before = () => undefined;
      throw apiError(409, 'Conflict', 'the object has been modified');
    };
    running.respec('web', { image: 'j' });
    await running.settle();
    expect(results).toEqual(['success', 'requeue']);
    await running.clock.advance(5);
    await running.settle();
    expect(running.live(Deployment, 'web')).toMatchObject({
      spec: { template: { spec: { containers: [{ image: 'j' }] } } },
    });
    expect(running.complaints()).toEqual([]);
  });

  it('complains when it is refused as if the cache were behind for longer than any cache is', async () => {
    const { server, queue } = run(HelloApp);
    server.before = ({ verb, type }) => {
      if (verb === 'POST' && type.kind === 'Deployment') throw apiError(409, 'Conflict', 'denied by a webhook');
    };
    await running.add('web', { image: 'i' });
    await running.settle();
    for (let failures = 1; failures < 11; failures++) {
      await running.clock.advance(5 * 2 ** failures);
      await running.settle();
    }
    expect([queue.failures('object:default/web'), running.complaints()]).toEqual([11, []]);
    await running.clock.advance(5 * 2 ** 11);
    await running.settle();
    expect(running.complaints()).toEqual(['refused as if the cache were behind, again and again; trying again']);
    expect(running.log.at(-1)).toMatchObject({
      key: 'object:default/web',
      reason: 'Conflict',
      message: 'denied by a webhook',
    });
  });

  it('isolates an object that cannot be read from the others', async () => {
    run(HelloApp);
    await running.add('bad', { image: 7 });
    await running.add('good', { image: 'i' });
    await running.settle();
    expect(running.conditions('bad')[0]).toBe('Ready=False ErrInvalidSpec');
    expect(running.live(Deployment, 'good')).toBeDefined();
  });
});

describe('a controller of a kind with shared children', () => {
  it('reconciles the shared children first, then the objects that wait for them', async () => {
    const { server } = run(MicroServiceDeploy);
    await running.add('a', instance);
    await running.settle();
    expect(server.writes).toEqual([
      'POST ServiceAccount shop (kindred)',
      'POST Service shop (kindred)',
      'POST ConfigMap shop-a (kindred)',
      'POST Deployment shop-a (kindred)',
      'POST Service shop-a (kindred)',
      'APPLY MicroServiceDeploy a/status (kindred)',
    ]);
  });

  it('keeps them for the second object, and deletes them with the last', async () => {
    const { server } = run(MicroServiceDeploy);
    await running.add('a', instance);
    await running.add('b', { ...instance, fullName: 'shop-b' });
    await running.settle();
    const holders = (): unknown => running.live(Service, 'shop').metadata.ownerReferences?.map(({ name }) => name);
    expect(holders()).toEqual(['a', 'b']);
    server.remove(MicroServiceDeploy.type, ref('a'));
    await running.settle();
    expect(holders()).toEqual(['b']);
    server.remove(MicroServiceDeploy.type, ref('b'));
    await running.settle();
    expect([server.peek(Service, ref('shop')), server.peek(ServiceAccount, ref('shop'))]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it('shows a refused shared child in every object, and recovers when the obstacle goes', async () => {
    const { server } = run(MicroServiceDeploy);
    const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', namespace: NAMESPACE }, spec: {} };
    await server.create(Service, body, { fieldManager: 'kubectl' });
    await running.add('a', instance);
    await running.settle();
    expect(running.conditions('a')[0]).toBe('Ready=False ErrResourceExists');
    expect(running.live(ConfigMap, 'shop-a')).toBeDefined();
    server.remove(Service, ref('shop'));
    await running.settle();
    expect(running.conditions('a')[0]).toBe('Ready=False Progressing');
    expect(running.live(Service, 'shop').metadata.ownerReferences).toMatchObject([{ name: 'a' }]);
  });

  it('deletes what the last object left while no operator ran', async () => {
    const { server } = run(MicroServiceDeploy);
    await running.add('a', instance);
    await running.settle();
    await running.stop();
    server.remove(MicroServiceDeploy.type, ref('a'));
    await running.settle();
    server.takeRequests();
    running = new RunningController(MicroServiceDeploy, { server });
    running.start();
    await running.settle();
    expect(server.writes).toEqual(['DELETE ServiceAccount shop (Background)', 'DELETE Service shop (Background)']);
  });

  it('leaves them to the hands of people while their only object is paused, and corrects them then', async () => {
    const { server } = run(MicroServiceDeploy);
    await running.add('a', instance);
    await running.settle();
    running.annotate('a', { 'kindred.dev/paused': 'true' });
    await running.settle();
    server.takeRequests();
    server.edit(Service, ref('shop'), (live) => ({
      ...live,
      spec: { ...(live.spec as object), selector: { app: 'by-hand' } },
    }));
    await running.settle();
    expect([server.writes, running.conditions('a')]).toEqual([[], ['Ready=Unknown Paused']]);
    running.annotate('a', {});
    await running.settle();
    expect(running.live(Service, 'shop')).toMatchObject({ spec: { selector: { app: 'shop' } } });
    expect(running.conditions('a')[0]).toBe('Ready=False Progressing');
  });

  it('makes them, and what waits for them, at the end of a pause in which the object was created', async () => {
    const { server } = run(MicroServiceDeploy);
    await running.add('a', instance, { annotations: { 'kindred.dev/paused': 'true' } });
    await running.settle();
    expect([server.writes, running.conditions('a')]).toEqual([
      ['APPLY MicroServiceDeploy a/status (kindred)'],
      ['Ready=Unknown Paused'],
    ]);
    running.annotate('a', {});
    await running.settle();
    expect(running.live(Service, 'shop').metadata.ownerReferences).toMatchObject([{ name: 'a' }]);
    expect(running.live(Deployment, 'shop-a')).toBeDefined();
  });

  it('corrects at the end of a pause what an object holds whose spec does not say what it shares', async () => {
    const { server } = run(MicroServiceDeploy);
    const paused = { 'kindred.dev/paused': 'true' };
    const { apiVersion, kind, metadata } = await running.add('a', { msName: 7 }, { annotations: paused });
    const service = held({ apiVersion, kind, name: 'a', uid: metadata.uid ?? '' });
    await server.create(Service, service, { fieldManager: 'kindred' });
    await running.settle();
    expect(running.live(Service, 'shop')).toMatchObject({ spec: service.spec as object });
    running.annotate('a', {});
    await running.settle();
    expect(running.live(Service, 'shop')).toMatchObject({ spec: { selector: { app: 'shop' } } });
    expect(running.conditions('a')[0]).toBe('Ready=False ErrInvalidSpec');
  });

  it('leaves them standing when an object goes with --cascade=orphan whose spec does not say what it shares', async () => {
    const { server } = run(MicroServiceDeploy);
    const { apiVersion, kind, metadata } = await running.add('a', { msName: 7 });
    await server.create(Service, held({ apiVersion, kind, name: 'a', uid: metadata.uid ?? '' }), { fieldManager: 'x' });
    await running.settle();
    server.remove(MicroServiceDeploy.type, ref('a'), 'Orphan');
    await running.settle();
    server.collectGarbage();
    await running.settle();
    expect(server.peek(MicroServiceDeploy.type, ref('a'))).toBeUndefined();
    expect(running.live(Service, 'shop').metadata.ownerReferences).toEqual([]);
  });
});
