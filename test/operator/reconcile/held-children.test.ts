import { owned } from '../../../constructs/kube/resource-type';
import { PlanError } from '../../../operator/effects/plan-runner';
import { ref } from './harness';
import { childWrites, configMap, HELD, kindOf, Probed, Site, Stored, type Props } from './sites';

let world: Site;

test('an object without reports has the children that need none', async () => {
  world = await Site.of(Stored);
  expect(childWrites(await world.reconcile())).toHaveLength(1);
  expect(world.child('settings')).toBeDefined();
  expect(world.harness.conditions('a')).toEqual(['Ready=False Provisioning', 'Reconciling=True Provisioning']);
  expect(world.harness.message('a')).not.toContain('held');
});

describe.each([
  ['stored effects', Stored],
  ['effects that are run again after a restart', Probed],
])('a status that was lost, with %s', (_, kind) => {
  beforeEach(async () => {
    world = await Site.ready(kind);
  });

  test('is written again, and no child changes', async () => {
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    expect(world.harness.object('a').status).toMatchObject({ image: 'a:1', settings: 2 });
  });
});

describe('a status that was lost, and its reports too', () => {
  const before: (string | undefined)[] = [];

  beforeEach(async () => {
    world = await Site.ready(Probed);
    before.splice(0, 2, world.uid('settings'), world.uid('web'));
    world.restart();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
  });

  const isUntouched = (): void => expect([world.uid('settings'), world.uid('web')]).toEqual(before);

  test('holds the children, and says so', () => {
    isUntouched();
    expect(world.harness.conditions('a')).toEqual(['Ready=False Provisioning', 'Reconciling=True Provisioning']);
    expect(world.harness.message('a')).toBe(`resolve begins, attempt 1 of 3. ${HELD}`);
    // What exists is observed, whether it is rendered now or not.
    expect(world.harness.object('a').status).toMatchObject({ settings: 2 });
  });

  test('ends with the next report, by which nothing changes', async () => {
    await world.find();
    expect(childWrites(await world.reconcile())).toEqual([]);
    isUntouched();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });

  test('holds them while the effect fails, for as long as that takes', async () => {
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await world.end(new PlanError('ErrLookup', 'The registry does not answer.'));
      const { next, ...rest } = await world.reconcile();
      expect(childWrites(rest)).toEqual([]);
      expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrLookup');
      expect(world.harness.message('a')).toContain(HELD);
      world.clock.pass(next.requeueAfterMs ?? 0);
      await world.reconcile();
    }
    isUntouched();
    await world.find();
    expect(childWrites(await world.reconcile())).toEqual([]);
  });

  test('holds them through another change of the spec and another restart', async () => {
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    world.restart();
    expect(childWrites(await world.reconcile())).toEqual([]);
    isUntouched();
    // It does not follow from the status.
    expect(world.child('settings')).toMatchObject({ data: { size: '2' } });
    await world.find();
    expect(childWrites(await world.reconcile())).toEqual([]);
    isUntouched();
  });

  test('deletes what the next report no longer asks for', async () => {
    await world.end({ message: 'There is none.' });
    await world.reconcile();
    expect(world.child('web')).toBeUndefined();
    expect(world.child('settings')).toBeDefined();
  });

  test('creates what needs no report', async () => {
    world.harness.server.remove(owned.ConfigMap, ref('settings'));
    expect(childWrites(await world.reconcile())).toHaveLength(1);
    expect(world.uid('web')).toBe(before[1]);
  });

  test('does not prevent the deletion of the object', async () => {
    const { kind, server } = world.harness;
    server.edit(kind.type, ref('a'), (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/other'] },
    }));
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.conditions('a')[0]).toBe('Ready=False Terminating');
  });
});

describe('a restart', () => {
  test('with a status that says Ready changes nothing, before the first report and after it', async () => {
    world = await Site.ready(Probed);
    world.restart();
    expect((await world.reconcile()).writes).toEqual([]);
    await world.find();
    expect((await world.reconcile()).writes).toEqual([]);
  });

  test('with a status that lacks a field holds the children', async () => {
    world = await Site.ready(Probed);
    const { kind, server } = world.harness;
    const { image: _, ...rest } = world.harness.object('a').status;
    server.setStatus(kind.type, ref('a'), rest);
    world.restart();
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.find();
    expect(childWrites(await world.reconcile())).toEqual([]);
  });

  test('with a state that was lost holds the children until it is made again', async () => {
    world = await Site.ready(Stored);
    const web = world.uid('web');
    world.lose('a-state');
    world.restart();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.message('a')).toContain(HELD);
    await world.find();
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.uid('web')).toBe(web);
  });
});

describe.each([
  ['stored effects', Stored],
  ['effects that are run again after a restart', Probed],
])('a change of the spec, with %s', (_, kind) => {
  beforeEach(async () => {
    world = await Site.ready(kind);
  });

  test('holds the children until the effect has succeeded for it', async () => {
    world.harness.respec('a', { source: 'b', size: 2 });
    await world.reconcile();
    expect(world.harness.message('a')).toContain(HELD);
    expect(world.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
    // It does not follow from the status.
    expect(world.child('settings')).toMatchObject({ data: { size: '2' } });
    await world.find('b');
    await world.reconcile();
    expect(world.child('web')).toMatchObject({ data: { source: 'b', image: 'b:1' } });
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });

  test('that is none for the effect holds nothing, also while the effect fails', async () => {
    world.harness.respec('a', { size: 2 });
    await world.reconcile();
    expect(world.child('settings')).toMatchObject({ data: { size: '2' } });
    world.clock.pass(60_000);
    await world.reconcile();
    if (world.open.length > 0) await world.end(new PlanError('ErrLookup', 'The registry does not answer.'));
    world.harness.respec('a', { size: 3 });
    await world.reconcile();
    expect(world.child('settings')).toMatchObject({ data: { size: '3' } });
    expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
  });

  test('that is taken back while the run waits or runs ends as it began', async () => {
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    world.harness.respec('a', { source: 'a' });
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.find('b');
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.find('a');
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });
});

test('a message does not grow with each restart', async () => {
  world = await Site.ready(Probed);
  world.harness.respec('a', { source: 'b' });
  await world.reconcile();
  await world.end(new PlanError('ErrLookup', 'The registry does not answer.'));
  await world.reconcile();
  for (let i = 0; i < 3; i += 1) {
    world.restart();
    await world.reconcile();
    await world.reconcile();
  }
  expect(world.harness.message('a').split('are held')).toHaveLength(2);
});

test('a status that is lost again while a first run is in progress is reported', async () => {
  world = await Site.ready(Probed);
  world.restart();
  await world.reconcile();
  world.loseStatus();
  await world.reconcile();
  expect(world.harness.conditions('a')).toEqual(['Ready=False Held', 'Reconciling=True Held']);
  expect(world.harness.message('a')).toBe(HELD);
});

test('a status that is lost while the effect runs again changes nothing', async () => {
  world = await Site.ready(Probed);
  world.clock.pass(60_001);
  await world.reconcile();
  expect(world.open).toHaveLength(1);
  world.loseStatus();
  expect(childWrites(await world.reconcile())).toEqual([]);
  expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  await world.find();
  expect(childWrites(await world.reconcile())).toEqual([]);
});

test('a report for the former spec is not what `children` sees with the next one', async () => {
  const children: Props['children'] = (scope, { spec: { source }, status }) => {
    if (status?.image === undefined) return;
    if (!status.image.startsWith(source)) throw new TypeError('no image of this source');
    configMap(scope, 'web', { source, image: status.image });
  };
  world = await Site.ready(kindOf({ children, observe: () => ({}) }));
  world.harness.respec('a', { source: 'b' });
  await world.calm();
  expect(world.harness.conditions('a')[0]).toBe('Ready=False Provisioning');
  await world.finish({ image: 'b:1' });
  expect(world.child('web')).toMatchObject({ data: { source: 'b' } });
});
