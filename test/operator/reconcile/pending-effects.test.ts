import { ApiObject } from 'cdk8s';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { PlanError } from '../../../operator/effects/plan-runner';
import { ref } from './harness';
import { childWrites, configMap, kindOf, resolve, Site, type Props, type Self } from './sites';

// What does not wait for a pending effect, and what is said of it.

let world: Site;

describe('an effect that says what it reports', () => {
  it('is not waited for when it reports nothing, although it has never succeeded', async () => {
    const children: Props['children'] = (scope, { status }) => {
      if (status?.image !== undefined) configMap(scope, 'web', { image: status.image, note: status.note ?? '' });
    };
    world = await Site.of(kindOf({ children, effects: [resolve, { ...resolve, name: 'verify', reports: [] }] }));
    await world.reconcile();
    await world.finish({ image: 'a:bad' });
    expect(world.child('web')).toMatchObject({ data: { image: 'a:bad' } });
    await world.finish(new PlanError('ErrVerify', 'web does not answer.'));
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    await world.finish({ image: 'b:1' });
    // `verify` fails until web has the new image.
    expect(world.child('web')).toMatchObject({ data: { image: 'b:1' } });
  });

  it('is waited for with a field that an effect before has reported, too', async () => {
    const pin = { ...resolve, name: 'pin', reports: ['image'], input: ({ spec: { size } }: Self) => ({ size }) };
    const children: Props['children'] = (scope, { status }) => {
      if (status?.image !== undefined) configMap(scope, 'web', { image: status.image });
    };
    world = await Site.of(kindOf({ children, effects: [resolve, pin] }));
    await world.reconcile();
    await world.finish({ image: 'a:1' });
    await world.finish({ image: 'a@sha' });
    expect(world.child('web')).toMatchObject({ data: { image: 'a@sha' } });
    world.harness.respec('a', { size: 2 });
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.message('a')).toContain('Until the effect "pin" has succeeded for this spec');
  });

  it.each<[string, (site: Site) => Promise<void>]>([
    ['with its result', (site) => site.finish({ note: 'n' })],
    ['with a failure', (site) => site.finish(new PlanError('ErrLookup', 'No.', { status: { note: 'n' } }))],
  ])('fails when it reports something else: %s', async (_, report) => {
    world = await Site.of(kindOf({ effects: [{ ...resolve, reports: ['image'] }] }));
    await world.reconcile();
    await report(world);
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrPlan');
    expect(world.harness.message('a')).toContain(
      'the plan thing.up reported status.note, which is not among the `reports` of the effect resolve; add it there',
    );
    expect(world.harness.object('a').status).not.toHaveProperty('note');
  });

  it('may only name fields of the status', () => {
    expect(() => kindOf({ effects: [{ ...resolve, reports: ['image', 'color'] }] })).toThrow(
      'effects[0].reports: "color" is none of the fields of the kind\'s status',
    );
  });
});

test.each([[undefined], ['Verified']])(
  'the condition of an effect before is known while one is pending that has the condition %s',
  async (own) => {
    const conditionTypes = ['Found', 'Verified'].map((type) => ({ type, description: `It is ${type}.` }));
    const children: Props['children'] = (scope, { spec: { source }, status }) => {
      if (status?.conditions?.find(({ type }) => type === 'Found')?.status === 'True')
        configMap(scope, 'web', { source });
    };
    const effects = [
      { ...resolve, condition: 'Found' },
      { ...resolve, name: 'verify', ...(own !== undefined && { condition: own }) },
    ];
    world = await Site.of(
      kindOf({ children, conditionTypes: own ? conditionTypes : conditionTypes.slice(0, 1), effects }),
    );
    await world.reconcile();
    await world.finish();
    expect(world.child('web')).toBeDefined();
    await world.finish(own ? {} : new PlanError('ErrVerify', 'web does not answer.'));
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    await world.finish();
    expect(world.child('web')).toMatchObject({ data: { source: 'b' } });
  },
);

describe('what observe says before the effects are looked at', () => {
  it('does not keep a new spec from being applied when it throws', async () => {
    const children: Props['children'] = (scope, { spec: { size } }) =>
      configMap(scope, 'settings', { size: String(size) });
    const observe: Props['observe'] = ({ children: all }) => {
      const { size } = (all.one(owned.ConfigMap)?.['data'] ?? {}) as { readonly size?: string };
      if (size === '13') throw new TypeError('13');
      return {};
    };
    world = await Site.of(kindOf({ children, observe }));
    await world.reconcile();
    await world.finish();
    world.harness.respec('a', { size: 13 });
    await world.calm();
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrRender');
    world.harness.respec('a', { size: 14 });
    await world.calm();
    expect(world.child('settings')).toMatchObject({ data: { size: '14' } });
  });

  it('may expect the children to exist', async () => {
    const children: Props['children'] = (scope) => configMap(scope, 'settings', {});
    const observe: Props['observe'] = ({ children: all }) => ({
      settings: (all.one(owned.ConfigMap) as KubeObject).metadata.name.length,
    });
    world = await Site.of(kindOf({ children, observe }));
    await world.calm();
    expect(world.child('settings')).toBeDefined();
  });
});

test('Ready does not change with each run of a probe', async () => {
  const provision = { ...resolve, name: 'provision', when: ({ status }: Self) => status?.image === undefined };
  const probe = { ...resolve, name: 'probe', everySeconds: 60 };
  const sign = { ...resolve, name: 'sign', input: ({ status }: Self) => ({ image: status?.image ?? null }) };
  const children: Props['children'] = (scope, { status }) => {
    if (status?.verified !== undefined) configMap(scope, 'web', { verified: status.verified });
  };
  world = await Site.of(kindOf({ children, effects: [provision, probe, sign] }));
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  await world.finish();
  await world.finish({ verified: 'y' });
  expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  world.clock.pass(60_001);
  await world.reconcile();
  await world.reconcile();
  expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
});

test('what observe says does not depend on the order of the cache', async () => {
  const seen: (string | undefined)[] = [];
  const children: Props['children'] = (scope) => {
    configMap(scope, 'zeta', {});
    configMap(scope, 'alpha', {});
  };
  const observe: Props['observe'] = ({ children: all }) => {
    seen.push(all.one(owned.ConfigMap)?.metadata.name);
    return {};
  };
  world = await Site.of(kindOf({ children, observe }));
  await world.calm();
  const { server } = world.harness;
  server.remove(owned.ConfigMap, ref('zeta'));
  await world.calm();
  seen.length = 0;
  await world.calm();
  expect(new Set(seen)).toEqual(new Set(['zeta']));
});

test('a child that uses a held ServiceAccount which is missing is not written', async () => {
  const { Deployment, ServiceAccount } = owned;
  const labels = { app: 'web' };
  const children: Props['children'] = (scope, { spec: { size }, status }) => {
    new ApiObject(scope, 'deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
      spec: {
        ...{ replicas: size, selector: { matchLabels: labels } },
        template: {
          metadata: { labels },
          spec: { serviceAccountName: 'web', containers: [{ name: 'web', image: 'i' }] },
        },
      },
    });
    if (status?.image !== undefined) configMap(scope, 'web', {});
    new ApiObject(scope, 'account', {
      ...{
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'web', labels: { image: status?.image ?? 'none' } },
      },
    });
  };
  world = await Site.of(kindOf({ children, owns: [Deployment, ServiceAccount, owned.ConfigMap], observe: () => ({}) }));
  const { server } = world.harness;
  await world.reconcile();
  await world.finish({ image: 'some' });
  expect(server.peek(Deployment, ref('web'))?.spec).toMatchObject({ replicas: 1 });
  server.remove(ServiceAccount, ref('web'));
  world.harness.respec('a', { source: 'b', size: 2 });
  await world.calm();
  expect(server.peek(ServiceAccount, ref('web'))).toBeUndefined();
  expect(server.peek(Deployment, ref('web'))?.spec).toMatchObject({ replicas: 1 });
});
