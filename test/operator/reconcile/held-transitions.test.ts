import { PlanError } from '../../../operator/effects/plan-runner';
import { ref } from './harness';
import { configMap, kindOf, resolve, Site, Stored, type Props, type Self } from './sites';

// What happens between two reports, and to the records that they are kept in.

let world: Site;

const web: Props['children'] = (scope, { spec: { source }, status }) => {
  if (status?.image !== undefined) configMap(scope, 'web', { source, image: status.image });
};

describe('a field that is reported for the first time with another spec', () => {
  beforeEach(async () => {
    world = await Site.of(Stored);
    await world.reconcile();
    await world.finish();
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    await world.report({ image: 'b:1' });
    expect(world.child('web')).toBeDefined();
  });

  it('is waited for when the process is killed', async () => {
    const uid = world.uid('web');
    world.restart();
    await world.reconcile();
    expect(world.uid('web')).toBe(uid);
  });

  it('is waited for when the run fails, and the spec changes again', async () => {
    await world.finish(new PlanError('ErrLookup', 'No answer.'));
    expect(world.child('web')).toBeDefined();
    world.harness.respec('a', { source: 'c' });
    await world.reconcile();
    expect(world.child('web')).toBeDefined();
  });
});

test('a field that is new in a version of the kind is waited for', async () => {
  let version = 1;
  const children: Props['children'] = (scope, self) => {
    if (version === 1) configMap(scope, 'web', { source: self.spec.source, image: self.status?.note ?? '' });
    else web(scope, self);
  };
  world = await Site.of(
    kindOf({ children, effects: [{ ...resolve, input: ({ spec: { source } }) => ({ source, version }) }] }),
  );
  await world.reconcile();
  await world.finish({ note: 'n' });
  const uid = world.uid('web');
  expect(uid).toBeDefined();
  version = 2;
  world.restart();
  await world.calm();
  expect(world.uid('web')).toBe(uid);
});

test('what an effect has reported stays while the one that took its place runs again', async () => {
  world = await Site.provisioned();
  await world.finish();
  const uid = world.uid('web');
  expect(uid).toBeDefined();
  world.harness.respec('a', { source: 'b' });
  await world.calm();
  expect(world.uid('web')).toBe(uid);
});

describe('what an effect has reported that concerns the object no longer', () => {
  let uid: string | undefined;

  beforeEach(async () => {
    const effects = [
      { ...resolve, when: ({ spec: { size } }: Self) => size < 5 },
      { ...resolve, name: 'check', input: ({ spec: { size } }: Self) => ({ size }) },
    ];
    world = await Site.of(kindOf({ children: web, effects }));
    await world.reconcile();
    await world.finish({ image: 'a:1' });
    await world.finish();
    uid = world.uid('web');
    expect(uid).toBeDefined();
    world.harness.respec('a', { size: 9 });
    await world.calm();
  });

  it('is known while another is pending', () => {
    expect(world.uid('web')).toBe(uid);
  });

  it('stays in its record when another one takes its place', async () => {
    await world.finish();
    expect(world.uid('web')).toBe(uid);
    world.restart();
    await world.reconcile();
    expect(world.uid('web')).toBe(uid);
    world.restart();
    world.loseStatus();
    await world.reconcile();
    expect(world.uid('web')).toBe(uid);
  });
});

test('a label that changes during the first run after a restart is waited for', async () => {
  const label = (source: string): void => {
    const { kind, server } = world.harness;
    server.edit(kind.type, ref('a'), (object) => ({ ...object, metadata: { ...object.metadata, labels: { source } } }));
  };
  const effects = [
    { ...resolve, everySeconds: 60, input: ({ metadata: { labels } }: Self) => ({ source: labels?.['source'] ?? '' }) },
  ];
  const children: Props['children'] = (scope, { metadata: { labels }, status }) => {
    if (status?.image !== undefined) configMap(scope, 'web', { source: labels?.['source'], image: status.image });
  };
  world = await Site.of(kindOf({ children, effects }));
  label('a');
  await world.reconcile();
  await world.find();
  await world.reconcile();
  world.restart();
  await world.reconcile();
  label('b');
  await world.calm();
  expect(world.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
});

test('a new version of the kind in which an effect has another name waits for it', async () => {
  let name = 'verify';
  const verify = { ...resolve };
  Object.defineProperty(verify, 'name', { enumerable: true, get: () => name });
  const children: Props['children'] = (scope, { status }) => {
    if (status?.verified !== undefined) configMap(scope, 'web', { verified: status.verified });
  };
  world = await Site.of(kindOf({ children, effects: [{ ...resolve, reports: ['image'] }, verify] }));
  await world.reconcile();
  await world.finish();
  await world.finish({ verified: 'yes' });
  const uid = world.uid('web');
  expect(uid).toBeDefined();
  name = 'check';
  world.restart();
  world.harness.respec('a', { source: 'b' });
  await world.calm();
  expect(world.uid('web')).toBe(uid);
  await world.finish();
  await world.finish({ verified: 'yes' });
  expect(world.uid('web')).toBe(uid);
});
