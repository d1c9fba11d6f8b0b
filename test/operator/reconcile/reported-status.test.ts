import { ApiObject } from 'cdk8s';
import { own } from '../../../constructs/kind/child-policy';
import { owned } from '../../../constructs/kube/resource-type';
import { ref } from './harness';
import { childWrites, configMap, kindOf, resolve, Site, Stored, type Props, type Self } from './sites';

let world: Site;

test('a field that a run in progress reports is known', async () => {
  world = await Site.of(Stored);
  await world.reconcile();
  world.open[0]?.run.report({ message: 'Found it.', status: { image: 'a:1' } });
  await world.reconcile();
  expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
});

test('an effect after the one whose report is rendered may need the children', async () => {
  const verify = { ...resolve, name: 'verify', input: ({ spec: { source, size } }: Self) => ({ source, size }) };
  world = await Site.of(kindOf({ effects: [resolve, verify] }));
  await world.reconcile();
  await world.find();
  await world.reconcile();
  expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
  await world.end({ message: 'It answers.' });
  await world.reconcile();
  world.harness.respec('a', { source: 'b' });
  await world.reconcile();
  await world.find('b');
  await world.reconcile();
  // `verify` has not succeeded for this spec; what is rendered does not depend on it.
  expect(world.child('web')).toMatchObject({ data: { image: 'b:1' } });
});

test('an effect whose `when` reads a status that was lost is waited for', async () => {
  const verify = {
    ...{ ...resolve, name: 'verify', everySeconds: 60 },
    when: ({ status: now }: Self) => (now?.settings ?? 0) > 0,
  };
  const children: Props['children'] = (scope, { status: reported }) => {
    configMap(scope, 'settings', {});
    if (reported?.verified !== undefined) configMap(scope, 'web', { verified: reported.verified });
  };
  world = await Site.of(kindOf({ effects: [verify], children }));
  await world.reconcile();
  await world.reconcile();
  await world.end({ message: 'It answers.', status: { verified: 'yes' } });
  await world.reconcile();
  const web = world.uid('web');
  world.restart();
  world.loseStatus();
  const { next, ...rest } = await world.reconcile();
  expect(childWrites(rest)).toEqual([]);
  expect(world.harness.conditions('a')).toEqual(['Ready=False Held', 'Reconciling=True Held']);
  expect(next.requeueAfterMs).toBe(1000);
  expect(childWrites(await world.reconcile())).toEqual([]);
  await world.end({ message: 'It answers.', status: { verified: 'yes' } });
  expect(childWrites(await world.reconcile())).toEqual([]);
  expect(world.uid('web')).toBe(web);
  expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
});

test('a Job that was complete is not run again while its report is missing', async () => {
  const children: Props['children'] = (scope, { status: reported }) => {
    const image = reported?.image ?? 'none';
    if (image === 'none') return;
    new ApiObject(scope, 'job', {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'migrate' } },
      spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'm', image }] } } },
    });
  };
  world = await Site.of(
    kindOf({
      owns: [own(owned.Job, { whenGone: 'keep-gone' })],
      effects: [{ ...resolve, everySeconds: 60 }],
      ...{ children, observe: () => ({}) },
    }),
  );
  const { server } = world.harness;
  await world.reconcile();
  await world.find();
  await world.reconcile();
  server.setStatus(owned.Job, ref('migrate'), {
    succeeded: 1,
    conditions: [{ type: 'Complete', status: 'True', reason: 'Done', message: 'Done.' }],
  });
  await world.reconcile();
  server.remove(owned.Job, ref('migrate'));
  await world.reconcile();
  world.restart();
  world.loseStatus();
  expect(childWrites(await world.reconcile())).toEqual([]);
  await world.find();
  expect(childWrites(await world.reconcile())).toEqual([]);
  expect(server.peek(owned.Job, ref('migrate'))).toBeUndefined();
});

test.each<[string, Props['children'], string]>([
  [
    'a copy of the status',
    (scope, { status: reported }) => configMap(scope, 'web', { text: JSON.stringify({ ...reported }) }),
    'the status',
  ],
  [
    'whether a field is there',
    (scope, { status: reported }) => configMap(scope, 'web', { text: String('image' in (reported ?? {})) }),
    'status.image',
  ],
])('what is read may be %s', async (_, children, field) => {
  world = await Site.of(kindOf({ children, effects: [{ ...resolve, everySeconds: 60 }] }));
  await world.reconcile();
  await world.find();
  await world.reconcile();
  world.restart();
  world.loseStatus();
  expect(childWrites(await world.reconcile())).toEqual([]);
  expect(world.harness.message('a')).toContain(`they are rendered from ${field}, which`);
});

test('children that read no status are not held', async () => {
  const children: Props['children'] = (scope, { spec: { size } }) => configMap(scope, 'web', { size: String(size) });
  world = await Site.of(kindOf({ children, effects: [{ ...resolve, everySeconds: 60 }] }));
  await world.reconcile();
  world.harness.respec('a', { source: 'b', size: 2 });
  await world.reconcile();
  expect(world.child('web')).toMatchObject({ data: { size: '2' } });
});

test('a condition of the kind is known once its effects have succeeded', async () => {
  const children: Props['children'] = (scope, { status: reported }) => {
    const found = reported?.conditions?.find(({ type }) => type === 'Found');
    configMap(scope, 'settings', {});
    if (found?.status === 'True') configMap(scope, 'web', { reason: found.reason });
  };
  const conditionTypes = [{ type: 'Found', description: 'It was found.' }];
  const effects = [{ ...resolve, everySeconds: 60, condition: 'Found' }];
  world = await Site.of(kindOf({ children, conditionTypes, effects }));
  await world.reconcile();
  expect(world.child('web')).toBeUndefined();
  await world.find();
  await world.reconcile();
  const web = world.uid('web');
  expect(world.child('web')).toMatchObject({ data: { reason: 'Succeeded' } });
  world.restart();
  world.loseStatus();
  expect(childWrites(await world.reconcile())).toEqual([]);
  await world.find();
  expect(childWrites(await world.reconcile())).toEqual([]);
  expect(world.uid('web')).toBe(web);
});
