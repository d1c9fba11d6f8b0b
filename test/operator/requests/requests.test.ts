import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';
import { rolledOut, ref } from '../reconcile/harness';
import { conflict, apiError, type MemoryRequest } from '../../../testing/api-server/requests';
import { TracedLife } from './traced-life';

// A change of these snapshots is a change of what the operator does to a cluster. A move or a rename must leave them as they are. Those of the kinds
// with effects are in effects.test.ts.

const { ConfigMap, CronJob, Deployment, Service, ServiceAccount } = owned;

/** An administrator gives the one container another image. */
const withImage = (image: string) => (object: object) => {
  const { spec, ...rest } = structuredClone(object) as { spec: PodOwner };
  Object.assign(spec.template.spec.containers[0] ?? {}, { image });
  return { ...rest, spec };
};
interface PodOwner {
  readonly template: { readonly spec: { readonly containers: readonly object[] } };
}

/** A Deployment of somebody else. */
const stranger = (name: string): KubeObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: ref(name) },
  ...{ spec: { template: { spec: { containers: [{ name: 'stranger', image: 'stranger:1' }] } } } },
});

/** The first request of this sort is answered by an error. */
function failOnce(life: TracedLife, verb: MemoryRequest['verb'], kind: string, error: Error): void {
  life.server.before = (request) => {
    if (request.verb !== verb || request.type.kind !== kind) return;
    life.server.before = () => undefined;
    throw error;
  };
}

test('HelloApp: one child', async () => {
  const life = new TracedLife(HelloApp);
  await life.step('created', () => life.create('web', { image: 'nginx:1', size: 2 }));
  await life.step('rolled out', () => life.server.setStatus(Deployment, ref('web'), rolledOut(2)));
  await life.step('another image', () => life.change('web', { image: 'nginx:2' }));
  await life.step('scaled', () => life.change('web', { size: 3 }));
  await life.step('scaled again, and the apply meets a conflict', async () => {
    failOnce(life, 'APPLY', 'Deployment', conflict('the object has been modified'));
    life.change('web', { size: 4 });
    await life.running.settle();
    await life.running.clock.advance(60_000);
  });
  await life.step('somebody gives the child another image', () =>
    life.edit(Deployment, 'web', withImage('stranger:1')),
  );
  await life.step('paused, and changed', () => {
    life.annotate('web', { 'kindred.dev/paused': 'true' });
    life.change('web', { size: 5 });
  });
  await life.step('not paused any more', () => life.annotate('web', {}));
  await life.step('asked for a reconcile', () => life.annotate('web', { 'kindred.dev/reconcile-at': '1' }));
  await life.restart('another process');
  await life.restart('another process, after a change', () => life.change('web', { image: 'nginx:3' }));
  await life.step('the child is deleted', () => life.delete(Deployment, 'web'));
  await life.step('deleted', () => life.delete(HelloApp.type, 'web'));
  expect(life.text).toMatchSnapshot();
});

test('HelloApp: the name is taken', async () => {
  const life = new TracedLife(HelloApp);
  await life.server.create(Deployment, stranger('web'), { fieldManager: 'kubectl' });
  await life.step('created', () => life.create('web', { image: 'nginx:1' }));
  await life.step('the other one is deleted', () => life.delete(Deployment, 'web'));
  expect(life.text).toMatchSnapshot();
});

test('DemoMicroService: a finalizer', async () => {
  const life = new TracedLife(DemoMicroService);
  await life.step('created', () => life.create('web', { image: 'podinfo:1' }));
  await life.step('another image', () => life.change('web', { image: 'podinfo:2' }));
  await life.restart('another process');
  await life.step('deleted, and the deletion of the child is refused', async () => {
    failOnce(life, 'DELETE', 'Deployment', apiError(403, 'Forbidden', 'deployments "web" is forbidden'));
    life.server.remove(DemoMicroService.type, ref('web'));
    await life.running.settle();
    await life.running.clock.advance(60_000);
  });
  await life.step('the child is gone', () => life.server.collectGarbage());
  expect(life.text).toMatchSnapshot();
});

const shop = { msName: 'shop', version: '1', path: 'v1', image: 'shop:1' };

test('MicroServiceDeploy: children that come and go, and a seed', async () => {
  const life = new TracedLife(MicroServiceDeploy);
  await life.step('created, with an autoscaler', () =>
    life.create('blue', { ...shop, fullName: 'shop-blue', replicas: 2, autoscaling: true, config: 'a=1' }),
  );
  await life.step('the autoscaler scales', () => life.server.scale(Deployment, ref('shop-blue'), 7));
  await life.step('another image', () => life.change('blue', { image: 'shop:2', creationTimestamp: '1535546718115' }));
  await life.step('no autoscaler', () => life.change('blue', { autoscaling: false }));
  await life.step('scaled', () => life.change('blue', { replicas: 3 }));
  await life.step('an autoscaler again', () => life.change('blue', { autoscaling: true }));
  await life.restart('another process, while the autoscaler scales', () =>
    life.server.scale(Deployment, ref('shop-blue'), 5),
  );
  await life.step('idle', () => life.change('blue', { idle: true }));
  await life.step('awake', () => life.change('blue', { idle: false }));
  await life.step('configured by a Secret', () =>
    life.change('blue', { config: undefined, configSecretRef: { name: 'shop', key: 'ms.properties' } }),
  );
  await life.step('another name, and the deletion of the old Service meets a conflict', async () => {
    failOnce(life, 'DELETE', 'Service', conflict('the UID in the precondition does not match'));
    life.change('blue', { fullName: 'shop-red', config: 'a=2', configSecretRef: undefined });
    await life.running.settle();
    await life.running.clock.advance(60_000);
  });
  await life.step('a child is deleted', () => life.delete(ConfigMap, 'shop-red'));
  await life.step('deleted', () => life.delete(MicroServiceDeploy.type, 'blue'));
  expect(life.text).toMatchSnapshot();
});

test('MicroServiceDeploy: shared children', async () => {
  const life = new TracedLife(MicroServiceDeploy);
  await life.step('the first instance', () => life.create('blue', { ...shop, fullName: 'shop' }));
  await life.step('a second one', () => life.create('green', { ...shop, fullName: 'shop-green' }));
  await life.step('somebody changes the shared Service', () =>
    life.edit(Service, 'shop', (object) => ({ ...object, spec: { ...object.spec, selector: { app: 'stranger' } } })),
  );
  await life.step('the shared ServiceAccount is deleted', () => life.delete(ServiceAccount, 'shop'));
  await life.step('a third one, and the apply of the Service meets a conflict', async () => {
    failOnce(life, 'APPLY', 'Service', conflict('the object has been modified'));
    await life.create('red', { ...shop, fullName: 'shop-red' });
    await life.running.settle();
    await life.running.clock.advance(60_000);
  });
  await life.restart('another process');
  await life.step('the third one is deleted', () => life.delete(MicroServiceDeploy.type, 'red'));
  await life.step('the first one is deleted', () => life.delete(MicroServiceDeploy.type, 'blue'));
  await life.restart('another process, after the last one was deleted', () =>
    life.server.remove(MicroServiceDeploy.type, ref('green')),
  );
  expect(life.text).toMatchSnapshot();
});

test('CronTab: a child that is optional', async () => {
  const life = new TracedLife(CronTab);
  await life.step('created without a spec', () => life.create('web', undefined));
  await life.step('scheduled', () => life.edit(CronTab.type, 'web', (object) => ({ ...object, spec: schedule })));
  await life.step('suspended', () => life.change('web', { suspend: true, timeZone: undefined }));
  await life.step('somebody resumes the child', () =>
    life.edit(CronJob, 'web', (object) => ({ ...object, spec: { ...object.spec, suspend: false } })),
  );
  await life.step('nothing scheduled', () => life.change('web', { cronSpec: undefined, image: undefined }));
  await life.step('scheduled again', () => life.change('web', schedule));
  await life.step('deleted', () => life.delete(CronTab.type, 'web'));
  expect(life.text).toMatchSnapshot();
});
const schedule = { cronSpec: '@hourly', image: 'job:1', timeZone: 'Etc/UTC', command: ['run'] };

test('SampleResource: one child', async () => {
  const life = new TracedLife(SampleResource);
  await life.step('created', () => life.create('web', { podImage: 'nginx:1' }));
  await life.step('another image', () => life.change('web', { podImage: 'nginx:2' }));
  await life.restart('another process');
  await life.step('deleted', () => life.delete(SampleResource.type, 'web'));
  expect(life.text).toMatchSnapshot();
});

test('Foo: a child of another name', async () => {
  const life = new TracedLife(Foo);
  await life.step('created', () => life.create('web', { deploymentName: 'old', replicas: 1 }));
  await life.step('another name', () => life.change('web', { deploymentName: 'new' }));
  await life.step('scaled', () => life.change('web', { replicas: 3 }));
  await life.step('a name that is taken', async () => {
    await life.server.create(Deployment, stranger('taken'), { fieldManager: 'kubectl' });
    life.change('web', { deploymentName: 'taken' });
  });
  await life.restart('another process');
  await life.step('deleted', () => life.delete(Foo.type, 'web'));
  expect(life.text).toMatchSnapshot();
});
