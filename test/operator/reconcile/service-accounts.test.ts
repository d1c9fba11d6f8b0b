import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { RunningController } from '../controller/running-controller';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref } from './harness';

const { CronJob, Deployment, Secret, Service, ServiceAccount } = owned;
const RoleBinding: ResourceType = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
};

const pods = { spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] } };
const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'robot' };
/** What uses the account, before the account itself: the order of rendering does not matter. */
const children: readonly { readonly type: ResourceType; readonly metadata?: object; readonly body?: object }[] = [
  { type: Deployment, body: { spec: { replicas: 1, selector: { matchLabels: { a: 'b' } }, template: pods } } },
  { type: CronJob, body: { spec: { schedule: '* * * * *', jobTemplate: { spec: { template: pods } } } } },
  { type: RoleBinding, body: { roleRef, subjects: [{ kind: 'ServiceAccount', name: 'robot' }] } },
  { type: Secret, metadata: { annotations: { 'kubernetes.io/service-account.name': 'robot' } } },
  { type: Service, body: { spec: { selector: { a: 'b' } } } },
  { type: ServiceAccount, metadata: { name: 'robot' } },
];

/** Runs under an account of its own. */
const Robot = defineKind({
  group: 'robots.example.com',
  version: 'v1',
  kind: 'Robot',
  plural: 'robots',
  scope: 'Namespaced',
  description: 'Runs under an account of its own.',
  spec: z.object({}),
  owns: [ServiceAccount, Deployment, CronJob, RoleBinding, Secret, Service],
  children: (scope) => {
    for (const { type, metadata, body } of children) {
      const { apiVersion, kind } = type;
      new ApiObject(scope, kind, { apiVersion, kind, metadata: { name: 'app', ...metadata }, ...body });
    }
  },
});

const stranger = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ref('robot') };
const users = [Deployment, CronJob, RoleBinding, Secret];

describe('an object whose children use a ServiceAccount that it renders', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(Robot);
    await harness.add('r', {});
  });

  it('has the account made first', async () => {
    const { writes } = await harness.reconcile('r');
    expect(writes.map((write) => write.split(' ').slice(0, 2).join(' '))).toEqual([
      'POST ServiceAccount',
      ...['Deployment', 'CronJob', 'RoleBinding', 'Secret', 'Service'].map((kind) => `POST ${kind}`),
      'APPLY Robot',
    ]);
  });

  it("makes none of them while the account is somebody else's, and all once it can have its own", async () => {
    await harness.server.create(ServiceAccount, stranger, { fieldManager: 'kubectl' });
    const { next } = await harness.reconcile('r');
    for (const type of users) expect(harness.server.peek(type, ref('app'))).toBeUndefined();
    expect(harness.live(Service, 'app')).toBeDefined();
    expect(harness.conditions('r')[0]).toBe('Ready=False ErrResourceExists');
    expect(next.awaited).toContainEqual({ type: ServiceAccount, ref: ref('robot') });
    harness.server.remove(ServiceAccount, ref('robot'));
    await harness.reconcile('r');
    for (const type of users) expect(harness.live(type, 'app')).toBeDefined();
  });

  it('makes none of them while the server refuses the account', async () => {
    harness.server.before = ({ verb, type }) => {
      if (verb === 'POST' && type === ServiceAccount) throw apiError(403, 'Forbidden', 'exceeded quota');
    };
    expect((await harness.reconcile('r')).next.action).toBe('retry');
    for (const type of users) expect(harness.server.peek(type, ref('app'))).toBeUndefined();
    harness.server.before = () => undefined;
    await harness.reconcile('r');
    for (const type of users) expect(harness.live(type, 'app')).toBeDefined();
  });

  it("writes nothing to those that exist once the account is somebody else's, and says what they wait for", async () => {
    await harness.reconcile('r');
    harness.server.remove(ServiceAccount, ref('robot'));
    await harness.server.create(ServiceAccount, stranger, { fieldManager: 'kubectl' });
    harness.server.scale(Deployment, ref('app'), 5);
    expect((await harness.reconcile('r')).writes).toEqual(['APPLY Robot r/status (kindred)']);
    harness.server.remove(ServiceAccount, ref('robot'));
    await harness.reconcile('r');
    expect(harness.live(Deployment, 'app').spec).toMatchObject({ replicas: 1 });
  });

  it('waits for an account that is being deleted', async () => {
    await harness.reconcile('r');
    harness.server.edit(ServiceAccount, ref('robot'), (live) => ({
      ...live,
      metadata: { ...live.metadata, finalizers: ['example.com/x'] },
    }));
    harness.server.remove(ServiceAccount, ref('robot'));
    harness.server.scale(Deployment, ref('app'), 5);
    await harness.reconcile('r');
    expect(harness.live(Deployment, 'app').spec).toMatchObject({ replicas: 5 });
    expect(harness.message('r')).toContain(
      `Deployment "app": it uses the ServiceAccount "robot", which is missing or somebody else's`,
    );
  });
});

describe('objects that share a ServiceAccount', () => {
  const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };
  const account = { ...stranger, metadata: ref('shop') };

  it("make no workload while the account is somebody else's, and make it when it goes", async () => {
    const running = new RunningController(MicroServiceDeploy);
    const { server } = running;
    await server.create(ServiceAccount, account, { fieldManager: 'kubectl' });
    running.start();
    await running.add('m', spec);
    await running.settle();
    expect(server.peek(Deployment, ref('shop-1'))).toBeUndefined();
    expect(running.live(Service, 'shop-1')).toBeDefined();
    expect(running.conditions('m')[0]).toBe('Ready=False ErrResourceExists');
    server.remove(ServiceAccount, ref('shop'));
    await running.settle();
    expect(running.live(Deployment, 'shop-1')).toBeDefined();
    await running.stop();
  });

  it('make their workload although another shared child is refused', async () => {
    const running = new RunningController(MicroServiceDeploy);
    const { server } = running;
    const taken = { apiVersion: 'v1', kind: 'Service', metadata: ref('shop'), spec: { ports: [{ port: 1 }] } };
    await server.create(Service, taken, { fieldManager: 'kubectl' });
    running.start();
    await running.add('m', spec);
    await running.settle();
    expect(running.live(Deployment, 'shop-1')).toBeDefined();
    await running.stop();
  });
});
