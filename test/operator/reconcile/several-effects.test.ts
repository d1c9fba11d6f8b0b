import { PlanError } from '../../../operator/effects/plan-runner';
import { apiError } from '../../../testing/api-server/requests';
import { ref } from './harness';
import { childWrites, configMap, kindOf, resolve, Site, type Props, type Self } from './sites';

// What is rendered from the reports of several effects, and of effects that concern an object only sometimes.

let world: Site;

describe('an effect that does not concern an object any more', () => {
  it('has reported what it reported, when it runs until it has', async () => {
    world = await Site.of(kindOf({ effects: [{ ...resolve, when: ({ status }) => status?.image === undefined }] }));
    await world.calm();
    await world.find();
    await world.calm();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    expect(world.child('web')).toBeDefined();
    world.loseStatus();
    expect(childWrites(await world.reconcile())).toEqual([]);
  });

  it('has reported what it reported, when the next one begins after it', async () => {
    world = await Site.provisioned();
    await world.end({ message: 'It is there.' });
    await world.reconcile();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    expect(world.child('web')).toBeDefined();
  });

  it('has reported what it reported, when the spec says so', async () => {
    world = await Site.of(kindOf({ effects: [{ ...resolve, when: ({ spec: { size } }) => size < 5 }] }));
    await world.calm();
    await world.find();
    await world.calm();
    world.harness.respec('a', { size: 9 });
    await world.calm();
    expect(world.child('web')).toBeDefined();
  });
});

describe('a stored effect and one that is run again', () => {
  beforeEach(async () => {
    world = await Site.of(kindOf({ effects: [resolve, { ...resolve, name: 'verify', everySeconds: 60 }] }));
    await world.reconcile();
    await world.find();
    await world.reconcile();
    await world.finish();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    world.clock.pass(60_001);
    world.restart();
  });

  it.each<[string, (status: Readonly<Record<string, unknown>>) => object]>([
    ['lost', () => ({})],
    ['without the field', (status) => ({ ...status, image: undefined })],
    ['with another value', (status) => ({ ...status, image: 'other:9' })],
  ])('are rendered from the record, and not from a status that is %s', async (_, change) => {
    await world.reconcile();
    const { kind, server } = world.harness;
    server.setStatus(kind.type, ref('a'), change(world.harness.object('a').status));
    expect(childWrites(await world.reconcile())).toEqual([]);
    await world.finish();
    expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
  });
});

describe('an effect whose input is the report of the one before', () => {
  const sign = { ...resolve, name: 'sign', input: ({ status }: Self) => ({ image: status?.image ?? null }) };
  const children: Props['children'] = (scope, { status }) => {
    if (status?.image === undefined || status.verified === undefined) return;
    configMap(scope, 'web', { image: status.image, verified: status.verified });
  };
  const signed = { data: { image: 'a:1', verified: 'a:1 is signed' } };

  async function ready(first: typeof resolve): Promise<void> {
    world = await Site.of(kindOf({ effects: [first, sign], children }));
    await world.reconcile();
    await world.find();
    await world.reconcile();
    await world.finish({ verified: 'a:1 is signed' });
    expect(world.child('web')).toMatchObject(signed);
  }

  it('has not reported for what that one reports now', async () => {
    await ready(resolve);
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    await world.report({ image: 'b:1' });
    expect(world.child('web')).toMatchObject(signed);
    await world.finish({ image: 'b:1' });
    expect(world.child('web')).toMatchObject(signed);
    await world.finish({ verified: 'b:1 is signed' });
    expect(world.child('web')).toMatchObject({ data: { image: 'b:1', verified: 'b:1 is signed' } });
  });

  it('has not reported for what that one reports when it fails', async () => {
    await ready(resolve);
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    await world.finish(new PlanError('ErrLookup', 'It was found, and is broken.', { status: { image: 'b:1' } }));
    expect(world.child('web')).toMatchObject(signed);
  });

  it('has not reported for what that one reports when it is run again and fails', async () => {
    await ready({ ...resolve, everySeconds: 60 });
    world.clock.pass(60_001);
    await world.reconcile();
    await world.finish(new PlanError('ErrLookup', 'It was found, and is broken.', { status: { image: 'a:2' } }));
    expect(world.child('web')).toMatchObject(signed);
  });

  it('is not an error while its input cannot be built, and the attempts of the one before go on', async () => {
    const strict = {
      ...sign,
      input: ({ spec: { source }, status }: Self) => {
        if (status?.image?.startsWith(source) !== true) throw new TypeError('no image of this source');
        return { image: status.image };
      },
    };
    world = await Site.of(kindOf({ effects: [resolve, strict] }));
    await world.reconcile();
    await world.report({ image: 'a:1' });
    await world.find();
    await world.calm();
    await world.finish();
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
    world.harness.respec('a', { source: 'b' });
    await world.reconcile();
    expect(world.harness.conditions('a')[0]).toBe('Ready=False Provisioning');
    await world.end(new PlanError('ErrLookup', 'The registry does not answer.'));
    const { next } = await world.reconcile();
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrLookup');
    expect(next.requeueAfterMs).toBe(1000);
  });
});

test('a report counts for the report of the effect before from which it was made', async () => {
  const sign = { ...resolve, name: 'sign', input: ({ status }: Self) => ({ image: status?.image ?? null }) };
  const children: Props['children'] = (scope, { spec: { source }, status }) => {
    if (status?.verified !== undefined) configMap(scope, 'web', { source, verified: status.verified });
  };
  world = await Site.of(kindOf({ children, effects: [resolve, sign] }));
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  await world.finish({ verified: 'a:1 is signed' });
  world.harness.respec('a', { source: 'b' });
  await world.calm();
  expect(world.child('web')).toMatchObject({ data: { source: 'a', verified: 'a:1 is signed' } });
});

test('a condition of one effect is held while another has succeeded', async () => {
  const conditionTypes = ['Found', 'Signed'].map((type) => ({ type, description: `It was ${type}.` }));
  const effects = [
    { ...resolve, condition: 'Found' },
    { ...resolve, name: 'sign', condition: 'Signed', input: ({ spec: { size } }: Self) => ({ size }) },
  ];
  const children: Props['children'] = (scope, { status }) =>
    configMap(scope, 'web', { signed: status?.conditions?.find(({ type }) => type === 'Signed')?.status ?? 'none' });
  world = await Site.of(kindOf({ children, conditionTypes, effects }));
  await world.reconcile();
  await world.finish();
  await world.finish();
  expect(world.child('web')).toMatchObject({ data: { signed: 'True' } });
  world.harness.respec('a', { size: 2 });
  expect(childWrites(await world.reconcile())).toEqual([]);
});

describe('an effect whose input is a label', () => {
  const fromLabel = { ...resolve, input: ({ metadata: { labels } }: Self) => ({ source: labels?.['source'] ?? '' }) };
  const children: Props['children'] = (scope, { metadata: { labels }, status }) => {
    if (status?.image !== undefined) configMap(scope, 'web', { source: labels?.['source'], image: status.image });
  };

  function label(source: string): void {
    const { kind, server } = world.harness;
    server.edit(kind.type, ref('a'), (object) => ({ ...object, metadata: { ...object.metadata, labels: { source } } }));
  }

  it.each<[string, readonly (typeof resolve)[]]>([
    ['while a later effect runs', [fromLabel, { ...resolve, name: 'verify' }]],
    ['that is run again', [{ ...fromLabel, everySeconds: 60 }]],
  ])('has not reported for another one: %s', async (_, effects) => {
    world = await Site.of(kindOf({ children, effects }));
    label('a');
    await world.reconcile();
    await world.find();
    await world.reconcile();
    expect(world.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
    label('b');
    await world.calm();
    expect(world.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
  });
});

test('an effect that reports nothing may need a child that reads a field which nothing reports', async () => {
  const children: Props['children'] = (scope, { spec: { source }, status }) =>
    configMap(scope, 'web', { source, image: status?.image ?? '', note: status?.note ?? '' });
  world = await Site.of(kindOf({ children, effects: [resolve, { ...resolve, name: 'verify', reports: [] }] }));
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  await world.finish();
  world.harness.respec('a', { source: 'b' });
  await world.reconcile();
  await world.finish({ image: 'b:1' });
  // `verify` has not succeeded for it.
  expect(world.child('web')).toMatchObject({ data: { source: 'b', image: 'b:1' } });
});

test('an effect may need the children that are rendered from the report of one before', async () => {
  const verify = { ...resolve, name: 'verify', input: ({ spec: { source, size } }: Self) => ({ source, size }) };
  world = await Site.of(kindOf({ effects: [resolve, verify] }));
  await world.reconcile();
  await world.find();
  await world.reconcile();
  expect(world.child('web')).toMatchObject({ data: { image: 'a:1' } });
  await world.finish();
  world.harness.respec('a', { source: 'b' });
  await world.reconcile();
  await world.find('b');
  await world.reconcile();
  // `verify` has not succeeded for this spec; what is rendered does not depend on it.
  expect(world.child('web')).toMatchObject({ data: { image: 'b:1' } });
});

test('an effect may need the children that are added before its own report is read', async () => {
  const children: Props['children'] = (scope, { spec: { source }, status }) => {
    if (status?.image !== undefined) configMap(scope, 'web', { source, image: status.image });
    if (status?.verified !== undefined) configMap(scope, 'settings', { verified: status.verified });
  };
  world = await Site.of(kindOf({ children, effects: [resolve, { ...resolve, name: 'verify' }] }));
  await world.reconcile();
  await world.finish({ image: 'a:1' });
  await world.finish({ verified: 'a:1 answers' });
  world.harness.respec('a', { source: 'b' });
  await world.calm();
  expect(world.child('web')).toMatchObject({ data: { source: 'a', image: 'a:1' } });
  await world.finish({ image: 'b:1' });
  expect(world.child('web')).toMatchObject({ data: { source: 'b', image: 'b:1' } });
  expect(world.child('settings')).toMatchObject({ data: { verified: 'a:1 answers' } });
  await world.finish({ verified: 'b:1 answers' });
  expect(world.child('settings')).toMatchObject({ data: { verified: 'b:1 answers' } });
});

test('an effect may need the children that are rendered from the condition of one before', async () => {
  const conditionTypes = [{ type: 'Found', description: 'It was found.' }];
  const children: Props['children'] = (scope, { status }) => {
    if (status?.conditions?.find(({ type }) => type === 'Found')?.status === 'True') configMap(scope, 'web', {});
  };
  const effects = [
    { ...resolve, condition: 'Found' },
    { ...resolve, name: 'verify' },
  ];
  world = await Site.of(kindOf({ children, conditionTypes, effects }));
  await world.reconcile();
  expect(world.child('web')).toBeUndefined();
  await world.find();
  await world.reconcile();
  expect(world.child('web')).toBeDefined();
});

describe('an effect whose `when` reads a status that was lost', () => {
  const verify = {
    ...{ ...resolve, name: 'verify', everySeconds: 60 },
    when: ({ status }: Self) => (status?.settings ?? 0) > 0,
  };
  const children: Props['children'] = (scope, { status }) => {
    configMap(scope, 'settings', {});
    if (status?.verified !== undefined) configMap(scope, 'web', { verified: status.verified });
  };
  let web: string | undefined;

  beforeEach(async () => {
    world = await Site.of(kindOf({ effects: [verify], children }));
    await world.calm();
    await world.finish({ verified: 'yes' });
    web = world.uid('web');
    expect(web).toBeDefined();
    world.restart();
    world.loseStatus();
  });

  afterEach(async () => {
    await world.calm();
    await world.finish({ verified: 'yes' });
    expect(world.uid('web')).toBe(web);
    expect(world.harness.conditions('a')).toEqual(['Ready=True Ready']);
  });

  it('is waited for', async () => {
    expect(childWrites(await world.reconcile())).toEqual([]);
    expect(world.harness.conditions('a')[0]).toBe('Ready=False Provisioning');
    expect(world.harness.message('a')).toContain('the children that follow from status.verified are held');
  });

  it('is waited for when the object was paused meanwhile', async () => {
    world.harness.annotate('a', { 'kindred.dev/paused': 'true' });
    await world.reconcile();
    world.harness.annotate('a', {});
    await world.reconcile();
  });

  it('is waited for when a reconcile failed meanwhile', async () => {
    const { effects } = world.harness.context;
    if (effects === undefined) throw new Error('it has no effects');
    const forbidden = apiError(403, 'Forbidden', 'no');
    const reconcile = jest.spyOn(effects, 'reconcile').mockRejectedValueOnce(forbidden);
    await world.reconcile();
    expect(world.harness.conditions('a')[0]).toBe('Ready=False ErrForbidden');
    reconcile.mockRestore();
  });
});
