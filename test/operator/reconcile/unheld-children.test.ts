import { ApiObject } from 'cdk8s';
import { own } from '../../../constructs/kind/child-policy';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { PlanError } from '../../../operator/effects/plan-runner';
import { apiError } from '../../../testing/api-server/requests';
import { ref } from './harness';
import { childWrites, configMap, kindOf, resolve, Site, Stored, type Props } from './sites';

// Which children are written while others wait for a report.

let world: Site;

/** Another client creates the settings. */
async function createSettings(metadata: Partial<ObjectMeta>): Promise<void> {
  const body: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...ref('settings'), ...metadata } };
  await world.harness.server.create(owned.ConfigMap, body, { fieldManager: 'kubectl' });
}

describe('children of a new object', () => {
  beforeEach(async () => {
    world = await Site.of(Stored);
  });

  it('are changed with the spec while the first run fails', async () => {
    await world.reconcile();
    await world.end(new PlanError('ErrSettings', 'The settings are wrong.'));
    world.harness.respec('a', { size: 2 });
    await world.calm();
    expect(world.child('settings')).toMatchObject({ data: { size: '2' } });
  });

  it('are created although one of them could not be at first', async () => {
    const children: Props['children'] = (scope, { status }) => {
      configMap(scope, 'settings', { note: status?.note ?? '' });
      configMap(scope, 'web', { note: status?.note ?? '' });
    };
    world = await Site.of(kindOf({ children }));
    const { server } = world.harness;
    let isRefused = false;
    server.before = ({ verb, ref: { name } }) => {
      if (isRefused || verb !== 'POST' || name !== 'web') return;
      isRefused = true;
      throw apiError(403, 'Forbidden', 'exceeded quota');
    };
    await world.calm();
    expect([isRefused, world.child('settings'), world.child('web')]).not.toContain(undefined);
  });

  it('may follow from what observe says while the effect needs them', async () => {
    const children: Props['children'] = (scope, { status }) => {
      configMap(scope, 'settings', {});
      if (status?.settings !== undefined) configMap(scope, 'web', {});
    };
    world = await Site.of(kindOf({ children }));
    await world.calm();
    await world.end(new PlanError('ErrResolve', 'There is no web.'));
    await world.calm();
    expect(world.child('web')).toBeDefined();
  });

  it('are reported when another client has their name', async () => {
    await createSettings({});
    const { next } = await world.reconcile();
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrResourceExists');
    expect(next.awaited).toHaveLength(1);
  });

  it('wait for those of a deleted object of the name', async () => {
    const { apiVersion, kind } = Stored;
    await createSettings({ ownerReferences: [{ apiVersion, kind, name: 'a', uid: 'old', controller: true }] });
    const { next } = await world.reconcile();
    expect(next.awaited).toHaveLength(1);
  });

  it('are adopted', async () => {
    await createSettings({ annotations: { 'kindred.dev/adopt': 'true' } });
    await world.reconcile();
    expect(world.child('settings')?.metadata.ownerReferences).toMatchObject([{ name: 'a' }]);
  });
});

describe('a child that is added before a field of the status is read', () => {
  it.each<[string, Props['children']]>([
    [
      'by itself',
      (scope, { spec: { size }, status }) => {
        configMap(scope, 'settings', { size: String(size) });
        for (const name of (status?.image ?? '').split(':').filter(Boolean)) configMap(scope, name, {});
      },
    ],
    [
      'of which no part is read',
      (scope, { spec: { size }, status }) => {
        configMap(scope, 'settings', { size: String(size) });
        if (status?.image !== undefined) configMap(scope, 'web', { host: new URL(status.image).host });
      },
    ],
    [
      'in a copy of the object',
      (scope, self) => {
        const { spec, status } = { ...self };
        configMap(scope, 'settings', { size: String(spec.size) });
        if (status?.image !== undefined) configMap(scope, 'web', {});
      },
    ],
  ])('is applied while others are held: %s', async (_, children) => {
    world = await Site.of(kindOf({ children }));
    await world.reconcile();
    await world.finish({ image: 'x:y' });
    world.harness.respec('a', { source: 'b', size: 2 });
    await world.calm();
    expect(world.child('settings')).toMatchObject({ data: { size: '2' } });
  });

  it('is held if it is changed afterwards', async () => {
    const children: Props['children'] = (scope, { spec: { size }, status }) => {
      const settings = new ApiObject(scope, 'settings', {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { size: String(size) } },
      });
      if (status?.image === 'none') return;
      settings.metadata.addLabel('image', 'some');
    };
    world = await Site.of(kindOf({ children }));
    await world.reconcile();
    await world.finish({ image: 'some' });
    world.harness.respec('a', { source: 'b', size: 2 });
    await world.calm();
    expect(world.child('settings')).toMatchObject({ data: { size: '1' } });
  });

  it('is held if the rest of it follows, and reading does not end the function', async () => {
    const children: Props['children'] = (scope, { spec: { size }, status }) => {
      let image = 'none';
      try {
        image = status?.image ?? 'none';
      } catch {
        image = 'unknown';
      }
      configMap(scope, 'settings', { size: String(size), image });
    };
    world = await Site.of(kindOf({ children }));
    await world.reconcile();
    await world.finish({ image: 'some' });
    world.harness.respec('a', { source: 'b', size: 2 });
    await world.calm();
    expect(world.child('settings')).toMatchObject({ data: { size: '1', image: 'some' } });
  });
});

test('the replicas of a Deployment stay with an autoscaler that exists, although the spec drops it', async () => {
  const { Deployment, HorizontalPodAutoscaler } = owned;
  const labels = { app: 'web' };
  const children: Props['children'] = (scope, { spec: { size }, status }) => {
    new ApiObject(scope, 'deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
      spec: {
        ...{ replicas: 2, selector: { matchLabels: labels } },
        template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'i' }] } },
      },
    });
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
    if (size === 1)
      new ApiObject(scope, 'autoscaler', {
        ...{ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name: 'web' } },
        spec: { maxReplicas: 9, scaleTargetRef },
      });
    if (status?.image !== undefined) configMap(scope, 'web', {});
  };
  const owns = [Deployment, HorizontalPodAutoscaler, owned.ConfigMap];
  const seeds = [{ of: Deployment, path: ['spec', 'replicas'], writer: HorizontalPodAutoscaler }];
  world = await Site.of(kindOf({ children, owns, seeds, observe: () => ({}) }));
  const { server } = world.harness;
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  server.scale(Deployment, ref('web'), 7);
  world.harness.respec('a', { source: 'b', size: 2 });
  await world.calm();
  expect(server.peek(HorizontalPodAutoscaler, ref('web'))).toBeDefined();
  expect(server.peek(Deployment, ref('web'))?.spec).toMatchObject({ replicas: 7 });
  await world.finish({ image: 'b:1' });
  expect(server.peek(HorizontalPodAutoscaler, ref('web'))).toBeUndefined();
  expect(server.peek(Deployment, ref('web'))?.spec).toMatchObject({ replicas: 2 });
});

describe('a child that takes the place of one that is rendered from a report', () => {
  const children: Props['children'] = (scope, { status }) => {
    if (status?.image === undefined) configMap(scope, 'placeholder', {});
    else configMap(scope, 'web', { image: status.image });
  };

  beforeEach(async () => {
    world = await Site.of(kindOf({ children }));
    await world.reconcile();
    expect(world.child('placeholder')).toBeDefined();
    await world.finish({ image: 'a:1' });
    expect(world.child('placeholder')).toBeUndefined();
  });

  it('is not created beside it', async () => {
    world.harness.respec('a', { source: 'b' });
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.child('web')).toBeDefined();
  });

  it('is not created either when another client deletes that one', async () => {
    world.harness.respec('a', { source: 'b' });
    await world.calm();
    world.harness.server.remove(owned.ConfigMap, ref('web'));
    await world.calm();
    expect(world.child('placeholder')).toBeUndefined();
    await world.finish({ image: 'b:1' });
    expect(world.child('web')).toBeDefined();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });
});

describe('a Job that is kept gone', () => {
  const job =
    (name: string, image: string): Props['children'] =>
    (scope) =>
      void new ApiObject(scope, 'job', {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } },
        spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'm', image }] } } },
      });
  const owns = [own(owned.Job, { whenGone: 'keep-gone' })];
  const jobs = (): readonly string[] =>
    ['migrate', 'migrate-a', 'migrate-b'].filter(
      (name) => world.harness.server.peek(owned.Job, ref(name)) !== undefined,
    );

  /** The Job is complete, and deleted. */
  async function complete(name: string): Promise<void> {
    const conditions = [{ type: 'Complete', status: 'True', reason: 'Done', message: 'Done.' }];
    world.harness.server.setStatus(owned.Job, ref(name), { succeeded: 1, conditions });
    await world.reconcile();
    world.harness.server.remove(owned.Job, ref(name));
    await world.reconcile();
  }

  it('is not run again while its report is missing', async () => {
    const children: Props['children'] = (scope, self) => {
      if (self.status?.image !== undefined) job('migrate', self.status.image)(scope, self);
    };
    world = await Site.of(kindOf({ owns, children, observe: () => ({}), effects: [{ ...resolve, everySeconds: 60 }] }));
    await world.reconcile();
    await world.finish({ image: 'a:1' });
    await complete('migrate');
    world.restart();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.finish({ image: 'a:1' });
    expect(jobs()).toEqual([]);
  });

  it('of the next spec is not run with what is rendered without a report', async () => {
    const children: Props['children'] = (scope, self) =>
      job(`migrate-${self.spec.source}`, self.status?.image ?? 'none')(scope, self);
    world = await Site.of(kindOf({ owns, children, observe: () => ({}) }));
    await world.reconcile();
    await world.finish({ image: 'none' });
    await complete('migrate-a');
    world.harness.respec('a', { source: 'b' });
    await world.calm();
    expect(jobs()).toEqual([]);
    await world.finish({ image: 'b:1' });
    expect(jobs()).toEqual(['migrate-b']);
  });
});

test('a child is rendered twice at most for each reconcile once it was compared', async () => {
  let calls = 0;
  const children: Props['children'] = (scope, { status }) => {
    calls += 1;
    configMap(scope, 'web', { image: status?.image ?? '' });
  };
  world = await Site.of(kindOf({ children }));
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  calls = 0;
  await world.reconcile();
  expect(calls).toBe(2);
});
