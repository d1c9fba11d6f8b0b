import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { DemoMicroService, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { QueueKey } from '../../../operator/controller/queue-keys';
import type { Priority } from '../../../operator/workqueue/work-queue';
import { ref } from '../reconcile/harness';
import { RunningController } from './running-controller';

const { Deployment, Service, ServiceAccount } = owned;
const instance = { msName: 'shop', fullName: 'shop-a', version: '1', path: 'v1', image: 'i' };

let running: RunningController;

/** A controller whose replica does not lead yet. */
function standby(kind: AnyKind): RunningController {
  running = new RunningController(kind);
  return running;
}

function service(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: ref(name), spec: {} };
}

/** What is queued, in the order of its turns, each with its priority. It is taken out. */
function takeAll({ queue }: RunningController): readonly [QueueKey, Priority][] {
  const taken: [QueueKey, Priority][] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) taken.push([next.key, next.priority]);
  for (const [key] of taken) queue.done(key);
  return taken;
}

afterEach(async () => {
  await running.stop();
});

describe('a controller that does not run yet', () => {
  it('queues nothing, whatever it is told of objects and children', async () => {
    const { server, queue } = standby(MicroServiceDeploy);
    await running.add('a', instance);
    await running.add('b', { ...instance, fullName: 'shop-b' });
    running.respec('a', { version: '2' });
    await server.create(Service, service('shop'), { fieldManager: 'kubectl' });
    server.remove(MicroServiceDeploy.type, ref('b'));
    await running.settle();
    expect([queue.depth, queue.delayedCount]).toEqual([0, 0]);
  });

  it('has no waiting time to tell of when its turn comes', async () => {
    const { clock, queue } = standby(HelloApp);
    await running.add('web', { image: 'i' });
    await running.settle();
    await clock.advance(3_600_000);
    const add = jest.spyOn(queue, 'add');
    running.start();
    expect(add.mock.calls).toEqual([['object:default/web', 'resync']]);
    await running.settle();
    expect(running.results).toEqual(['success']);
  });
});

describe('the first round', () => {
  it('has every object and every shared key once, what is shared before those that share it, as no urgent work', async () => {
    standby(MicroServiceDeploy);
    await running.add('a', instance);
    await running.add('b', { ...instance, fullName: 'shop-b' });
    await running.add('c', { ...instance, msName: 'cart', fullName: 'cart-c' });
    await running.settle();
    running.start();
    expect(takeAll(running)).toEqual([
      ['shared:service/default/shop', 'resync'],
      ['object:default/a', 'resync'],
      ['object:default/b', 'resync'],
      ['shared:service/default/cart', 'resync'],
      ['object:default/c', 'resync'],
    ]);
  });

  it('sees objects as they stand, not as they stood when the caches were filled', async () => {
    const { server } = standby(HelloApp);
    await running.add('web', { image: 'i' });
    await running.add('gone', { image: 'i' });
    await running.settle();
    running.respec('web', { image: 'j' });
    server.remove(HelloApp.type, ref('gone'));
    await running.settle();
    running.start();
    await running.settle();
    expect(server.writes).toEqual(['POST Deployment web (kindred)', 'APPLY HelloApp web/status (kindred)']);
    expect(running.live(Deployment, 'web')).toMatchObject({
      spec: { template: { spec: { containers: [{ image: 'j' }] } } },
    });
  });

  it('cleans up after what is being deleted', async () => {
    const { server } = standby(DemoMicroService);
    const finalizers = ['demomicroservice.finalizers.devops.my.domain'];
    await running.add('dms', { image: 'i' }, { finalizers });
    server.remove(DemoMicroService.type, ref('dms'));
    await running.settle();
    running.start();
    await running.settle();
    expect(server.peek(DemoMicroService.type, ref('dms'))).toBeUndefined();
  });

  it('deletes the shared children of an object that went while another replica led, or none', async () => {
    const { server } = standby(MicroServiceDeploy);
    const { metadata } = await running.add('a', instance);
    const annotations = { 'kindred.dev/shared-key': 'microservicedeploys.custom.ops/service/shop' };
    const owner = { apiVersion: 'custom.ops/v1', kind: 'MicroServiceDeploy', name: 'a', uid: metadata.uid ?? '' };
    for (const type of [Service, ServiceAccount]) {
      const child = { ...service('shop'), kind: type.kind };
      const body = { ...child, metadata: { ...child.metadata, annotations, ownerReferences: [owner] } };
      await server.create(type, body, { fieldManager: 'kindred' });
    }
    await running.settle();
    server.remove(MicroServiceDeploy.type, ref('a'));
    await running.settle();
    server.takeRequests();
    running.start();
    await running.settle();
    expect(server.writes).toEqual(['DELETE ServiceAccount shop (Background)', 'DELETE Service shop (Background)']);
  });

  it('lets a change that comes afterwards go first', async () => {
    standby(HelloApp);
    for (const name of ['a', 'b', 'c']) await running.add(name, { image: 'i' });
    await running.settle();
    running.start();
    running.respec('c', { image: 'j' });
    running.server.deliverEvents();
    expect(takeAll(running)).toEqual([
      ['object:default/c', 'user'],
      ['object:default/a', 'resync'],
      ['object:default/b', 'resync'],
    ]);
  });
});
