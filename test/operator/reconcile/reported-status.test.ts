import { PlanError } from '../../../operator/effects/plan-runner';
import { childWrites, configMap, kindOf, Probed, resolve, Site, Stored, type Props } from './sites';

// What `children` sees as the status, and how it may be read.

let world: Site;

describe('a field that a run in progress reports', () => {
  beforeEach(async () => {
    world = await Site.of(Stored);
    await world.reconcile();
    await world.report({ image: 'a:1' });
  });

  afterEach(async () => {
    expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
    world.restart();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
  });

  it('is known', () => {
    expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
  });

  it('stays known when the run ends without naming it', () => world.finish());

  it('stays known when the run fails', () => world.finish(new PlanError('ErrLookup', 'No answer.')));
});

test('a field stays known when the effect runs again and does not name it', async () => {
  world = await Site.ready(Probed);
  world.clock.pass(60_001);
  await world.reconcile();
  await world.finish();
  expect(world.harness.object('a').status).toMatchObject({ image: 'a:1' });
  expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
});

describe('children that are rendered from more than reports', () => {
  const effects = [{ ...resolve, everySeconds: 60, condition: 'Found' }];
  const conditionTypes = [{ type: 'Found', description: 'It was found.' }];

  it.each<[string, Props['children']]>([
    [
      'all conditions',
      (scope, { status: reported }) => configMap(scope, 'web', { text: JSON.stringify(reported?.conditions ?? []) }),
    ],
    [
      'what observe writes',
      (scope, { status: reported }) => {
        configMap(scope, 'settings', {});
        if (reported?.settings !== undefined) configMap(scope, 'web', {});
      },
    ],
    [
      'whether there is a status',
      (scope, { status: reported }) => {
        if (reported) configMap(scope, 'web', {});
      },
    ],
    [
      'a copy of the object',
      (scope, self) => {
        const { status: reported } = { ...self };
        if (reported?.image !== undefined) configMap(scope, 'web', { image: reported.image });
      },
    ],
  ])('are the same after a restart: %s', async (_, children) => {
    world = await Site.of(kindOf({ children, conditionTypes, effects }));
    await world.reconcile();
    await world.finish({ image: 'a:1' });
    const web = world.uid('web');
    expect(web).toBeDefined();
    world.restart();
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.end({ message: 'Done.', status: { image: 'a:1' } });
    expect(childWrites(await world.reconcile())).toEqual([]);
    world.restart();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.uid('web')).toBe(web);
  });
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
  expect(world.harness.message('a')).toContain(`the children that follow from ${field} are held`);
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
