import * as pulumi from '@pulumi/pulumi';
import { Engine, Secret, Unknown, unwrap } from './index';
import { Thing, ToyCloud, ToyProvider } from './providers/toy';
import { covers, applyIgnoreChanges, parsePath, textOf, type Value } from './engine/values';

const canary = 'canary-51e0';

function setUp(config: Record<string, string | { secret: string }> = {}): { cloud: ToyCloud; engine: Engine } {
  const cloud = new ToyCloud();
  return { cloud, engine: new Engine({ providers: [cloud.package()], config }) };
}

describe('secrets', () => {
  test('stay secret leaf by leaf, reach the provider, and lie nowhere in plain text', async () => {
    const { cloud, engine } = setUp({ password: { secret: canary }, 'toy:region': 'north' });
    const program = () => {
      const a = new Thing('a', { value: { open: 'open', hidden: new pulumi.Config().requireSecret('password') } });
      const b = new Thing('b', { value: a.token }, { additionalSecretOutputs: ['computed'] });
      return { whole: a.value, computed: b.computed, name: pulumi.output('plain') };
    };
    const result = await engine.up(program);
    expect([...cloud.things.values()][0]!.properties).toEqual({ value: { open: 'open', hidden: canary } });
    expect(engine.state.resource('a').inputs.value).toEqual({ open: 'open', hidden: new Secret(canary) });
    expect(['whole', 'computed', 'name'].map((name) => result.isSecret(name))).toEqual([true, true, false]);
    expect(result.output('computed')).toBe('computed of toy-token');
    expect(result.plainText()).toContain('open');
    expect(result.plainText()).not.toContain(canary);
    expect(result.plainText()).not.toContain('toy-token');
    expect(engine.export()).not.toContain(canary);
    expect(engine.state.resource('default_').inputs).toEqual({ region: 'north' });

    const next = new Engine({ providers: [cloud.package()], config: engine.config, state: engine.export() });
    expect((await next.up(program)).summary).toEqual([]);
    expect(unwrap(next.state.resource('b').outputs.computed!)).toBe('computed of toy-token');
    expect(() => new Engine({ providers: [], state: engine.export(), passphrase: 'other' })).toThrow();
  });

  test('a secret that becomes open, or the other way round, is no change', async () => {
    const { engine } = setUp();
    await engine.up(() => {
      new Thing('a', { value: pulumi.secret('x') });
    });
    const open = await engine.up(() => {
      new Thing('a', { value: 'x' });
    });
    expect(open.summary).toEqual([]);
  });

  test('a text is read from under its mark', () => {
    expect(textOf(new Secret(canary), 'stdout')).toBe(canary);
  });

  test.each<[string, Value | undefined]>([
    ['absent', undefined],
    ['null', null],
    ['a number', 7],
    ['a list', [canary]],
    ['a map', new Secret({ canary })],
    ['not known yet', new Unknown()],
  ])('what is no text is refused, and not shown: %s', (kind, value) => {
    expect(() => textOf(value, 'stdout')).toThrow(new TypeError(`stdout must be a text, and is ${kind}`));
  });

  test('what a program says aloud is found', async () => {
    const { engine } = setUp();
    const result = await engine.up(() => pulumi.log.warn(`oh, ${canary}`));
    expect(result.plainText()).toContain(canary);
  });
});

describe('a preview', () => {
  test('shows all that is known, and changes nothing', async () => {
    const { cloud, engine } = setUp();
    const program = (value: string) => () => {
      const provider = new ToyProvider('own', {});
      const a = new Thing('a', { value }, { provider });
      const b = new Thing('b', { value: a.computed }, { provider });
      return { known: a.value, unknown: a.computed, id: b.id, mixed: pulumi.all([a.value, b.id]) };
    };
    const plan = await engine.preview(program('x'));
    expect(plan.summary).toEqual(['create a', 'create b', 'create own']);
    expect(plan.output('known')).toBe('x');
    expect(['unknown', 'id', 'mixed'].map((name) => plan.output(name) instanceof Unknown)).toEqual([true, true, true]);
    expect(cloud.calls).toEqual([]);
    expect(engine.state.resources).toEqual([]);

    await engine.up(program('x'));
    expect((await engine.preview(program('x'))).summary).toEqual([]);
    const change = await engine.preview(program('y'));
    expect(change.summary).toEqual(['update a', 'update b']);
    expect(change.output('id')).toBe('id-2');
    expect(cloud.calls).toEqual(['create a', 'create b']);
  });

  test('plans without a provider whose configuration is not known yet', async () => {
    const { cloud, engine } = setUp();
    const program = () => {
      const machine = new Thing('machine', { value: 'm' });
      const provider = new ToyProvider('own', { region: machine.computed });
      new Thing('a', {}, { provider });
    };
    expect((await engine.preview(program)).summary).toEqual([
      'create a',
      'create default_',
      'create machine',
      'create own',
    ]);
    await engine.up(program);
    expect(cloud.names).toEqual(['a', 'machine']);
    expect((await engine.preview(program)).summary).toEqual([]);
  });

  test('shows replacements and deletions', async () => {
    const { cloud, engine } = setUp();
    const program = (key: string, both: boolean) => () => {
      new Thing('a', { key });
      if (both) new Thing('b', {});
    };
    await engine.up(program('1', true));
    expect((await engine.preview(program('2', false))).summary).toEqual(['delete b', 'delete-replaced a', 'replace a']);
    expect(cloud.names).toEqual(['a', 'b']);
  });
});

describe('several programs in one process', () => {
  test('do not see one another', async () => {
    const [one, two] = [setUp({ who: 'one' }), setUp({ who: 'two' })];
    const program = () => ({ who: new pulumi.Config().require('who'), stack: pulumi.getStack() });
    const [first, second] = await Promise.all([one.engine.up(program), two.engine.up(program)]);
    expect([first.output('who'), second.output('who')]).toEqual(['one', 'two']);
    expect(first.output('stack')).toBe('test');
  });
});

describe('property paths', () => {
  test.each([
    ['a.b', ['a', 'b']],
    ['a["b.c"].d', ['a', 'b.c', 'd']],
    ['a[0].b[*]', ['a', 0, 'b', '*']],
    ['["a\\"b"]', ['a"b']],
  ])('%s', (path, segments) => {
    expect(parsePath(path)).toEqual(segments);
  });

  test('a malformed one is refused', () => {
    expect(() => parsePath('a[b')).toThrow('the property path "a[b" is malformed at character 2');
  });

  test('keep what was there: changed, added, and dropped', () => {
    const old = { a: { x: 1, y: 1 }, list: [{ n: 1 }, { n: 2 }] };
    expect(applyIgnoreChanges({ a: { x: 2, y: 2 } }, old, ['a.x'])).toEqual({ a: { x: 1, y: 2 } });
    expect(applyIgnoreChanges({ a: { y: 2 } }, old, ['a.x'])).toEqual({ a: { x: 1, y: 2 } });
    expect(applyIgnoreChanges({ a: { z: 2 } }, old, ['a.z'])).toEqual({ a: {} });
    expect(applyIgnoreChanges({ list: [{ n: 5 }, { n: 6 }] }, old, ['list[*].n'])).toEqual({
      list: [{ n: 1 }, { n: 2 }],
    });
    expect(applyIgnoreChanges({}, {}, ['a.b'])).toEqual({});
    expect(applyIgnoreChanges({ a: new Secret({ x: 2 }) }, { a: new Secret({ x: 1 }) }, ['a.x'])).toEqual({
      a: new Secret({ x: 1 }),
    });
  });

  test('cover what lies at or below them', () => {
    expect(covers(['spec.replicas'], 'spec.replicas')).toBe(true);
    expect(covers(['spec.containers[*].image'], 'spec.containers[3].image')).toBe(true);
    expect(covers(['spec'], 'spec.replicas')).toBe(true);
    expect(covers(['spec.replicas'], 'spec')).toBe(false);
  });
});
