import { z } from 'zod';
import { buildEffectRun, selectEffects, type Effect, type InputReader } from '../../../constructs/kind/effects';
import { defineKind, type ConditionType } from '../../../constructs/kind/kind';
import { crdManifest } from '../../../constructs/crd';

interface Self {
  readonly size: number;
}

const bare: Effect<unknown> = {
  name: 'make',
  phase: 'apply',
  plan: 'thing.up',
  input: () => ({}),
  timeoutSeconds: 60,
  maxAttempts: () => 1,
};

const effect: Effect<Self> = { ...bare, input: ({ size }) => ({ size }), maxAttempts: ({ size }) => size };

const nothing: InputReader = {
  digest: () => {
    throw new Error('no Secret is read');
  },
  fileDigest: (path) => `digest of ${path}`,
};

describe('effectsOf', () => {
  const effects = [
    effect,
    { ...effect, name: 'large', when: ({ size }: Self) => size > 5 },
    { ...effect, name: 'unmake', phase: 'remove' as const },
  ];

  it('are those of the phase that concern the object, in order', () => {
    const names = (size: number, phase: 'apply' | 'remove') =>
      selectEffects(effects, { size }, phase).map(({ name }) => name);
    expect(names(1, 'apply')).toEqual(['make']);
    expect(names(9, 'apply')).toEqual(['make', 'large']);
    expect(names(9, 'remove')).toEqual(['unmake']);
  });
});

describe('effectRun', () => {
  it('is plain data', () => {
    const run = buildEffectRun(
      {
        ...effect,
        input: ({ size }, read) => ({ size, absent: undefined, list: [{ a: null }], file: read.fileDigest('f') }),
      },
      { size: 3 },
      nothing,
    );
    expect(run).toStrictEqual({
      name: 'make',
      phase: 'apply',
      plan: 'thing.up',
      input: { size: 3, list: [{ a: null }], file: 'digest of f' },
      timeoutSeconds: 60,
      maxAttempts: 3,
    });
    expect(buildEffectRun({ ...effect, everySeconds: 30 }, { size: 1 }, nothing).everySeconds).toBe(30);
  });

  it.each([
    ['a function', () => 1],
    ['a date', new Date(0)],
    ['not a number', Number.NaN],
    ['a map', new Map()],
  ])('refuses %s in the input, and says where', (_, value) => {
    const bad = { ...effect, input: () => ({ deep: [value] }) };
    expect(() => buildEffectRun(bad, { size: 1 }, nothing)).toThrow('the input of the effect "make".deep.0 is no JSON');
  });

  it('refuses a number of attempts that is none', () => {
    expect(() => buildEffectRun(effect, { size: 0 }, nothing)).toThrow('may be attempted 0 times');
    expect(() => buildEffectRun(effect, { size: 1.5 }, nothing)).toThrow('may be attempted 1.5 times');
  });

  it('lets through what the reader throws', () => {
    const reading: Effect<Self> = {
      ...effect,
      input: (_, read) => ({ a: read.digest(undefined as never, undefined as never) }),
    };
    expect(() => buildEffectRun(reading, { size: 1 }, nothing)).toThrow('no Secret is read');
  });
});

interface Parts {
  readonly effects?: readonly Partial<Effect<unknown>>[];
  readonly finalizer?: boolean;
  readonly conditionTypes?: readonly ConditionType[];
  readonly lastUpdateTime?: boolean;
}

function define({ effects = [], finalizer = true, ...rest }: Parts) {
  return defineKind({
    group: 'test.kindred.dev',
    version: 'v1',
    kind: 'Actor',
    plural: 'actors',
    scope: 'Namespaced',
    description: 'Acts.',
    spec: z.object({}),
    owns: [],
    ...(finalizer ? { finalizer: { name: 'test.kindred.dev/actor', propagation: 'Background' as const } } : {}),
    effects: effects.map((part) => ({ ...bare, ...part })),
    children: () => undefined,
    ...rest,
  });
}

describe('defineKind with effects', () => {
  it('keeps them, frozen', () => {
    const kind = define({ effects: [{}, { name: 'unmake', phase: 'remove' }] });
    expect(kind.effects.map(({ name }) => name)).toEqual(['make', 'unmake']);
    expect(Object.isFrozen(kind.effects)).toBe(true);
  });

  it.each<[string, Partial<Effect<unknown>>, string]>([
    ['a name that is no label', { name: 'Make it' }, 'effects[0].name: "Make it" must be'],
    ['a plan without a dot', { plan: 'up' }, 'effects[0].plan: "up" must be lower-case words joined by dots'],
    ['no time', { timeoutSeconds: 0 }, 'effects[0].timeoutSeconds: 0 must be an integer from 1 to 86400'],
    ['more than a day', { timeoutSeconds: 86401 }, 'effects[0].timeoutSeconds'],
    ['a busy loop', { everySeconds: 1 }, 'effects[0].everySeconds: 1 must be an integer of at least 10'],
    ['a removal again and again', { phase: 'remove', everySeconds: 60 }, 'what is removed once is not removed again'],
  ])('refuses %s', (_, part, message) => {
    expect(() => define({ effects: [part] })).toThrow(message);
  });

  it('refuses a name that stands twice', () => {
    expect(() => define({ effects: [{}, { phase: 'remove' }] })).toThrow('effects[1].name: "make" stands twice');
  });

  it('refuses a removal without a finalizer', () => {
    expect(() => define({ effects: [{ phase: 'remove' }], finalizer: false })).toThrow(
      'effects[0].phase: without a finalizer',
    );
  });
});

describe('the status field attempts', () => {
  const fields = (kind: ReturnType<typeof define>): readonly string[] =>
    Object.keys(kind.schema.status.properties ?? {});

  it('is there where something is removed at the end, and is not changed where the kind has it already', () => {
    expect(fields(define({ effects: [{}] }))).not.toContain('attempts');
    expect(fields(define({ effects: [{}, { name: 'unmake', phase: 'remove' }] }))).toContain('attempts');
    const own = {
      ...define({ effects: [{ phase: 'remove' }] }),
      status: z.object({ attempts: z.int32().optional().describe('Mine.') }),
    };
    expect(defineKind(own).schema.status.properties).toMatchObject({ attempts: { description: 'Mine.' } });
  });
});

describe('defineKind with conditions of its own', () => {
  const made = { type: 'Made', description: 'It is made.' };
  const effects = [{ condition: 'Made' }];
  const conditionsOf = (parts: Parts): unknown => {
    const { versions } = crdManifest(define(parts)).spec as { versions: { schema: { openAPIV3Schema: Schema } }[] };
    return versions[0]?.schema.openAPIV3Schema.properties?.status?.properties?.conditions;
  };

  it('describes them, and adds lastUpdateTime', () => {
    expect(conditionsOf({ effects, conditionTypes: [made], lastUpdateTime: true })).toMatchObject({
      description: expect.stringMatching(
        /Ready, Reconciling and Stalled follow kstatus. Made: It is made. Each carries lastUpdateTime.$/,
      ) as string,
      items: { properties: { lastUpdateTime: { format: 'date-time' }, reason: { type: 'string' } } },
    });
    expect(conditionsOf({ lastUpdateTime: true })).toHaveProperty('items.properties.lastUpdateTime');
    expect(conditionsOf({ effects, conditionTypes: [made] })).not.toHaveProperty('items.properties.lastUpdateTime');
    expect(conditionsOf({})).not.toHaveProperty('items.properties.lastUpdateTime');
  });

  it.each<[string, readonly ConditionType[], string]>([
    ['a common one', [{ ...made, type: 'Ready' }], 'every kind has the condition Ready'],
    ['one that is not CamelCase', [{ ...made, type: 'made' }], '"made" must be CamelCase'],
    ['one twice', [made, made], 'conditionTypes[1]: "Made" stands twice'],
    ['one without a description', [{ ...made, description: ' ' }], 'it has no description'],
  ])('refuses %s', (_, conditionTypes, message) => {
    expect(() => define({ conditionTypes })).toThrow(message);
  });

  it('refuses them in a kind without effects, which are all that reports them', () => {
    expect(() => define({ conditionTypes: [made] })).toThrow(
      'conditionTypes: only effects report conditions of the kind, and it has none',
    );
    expect(define({ effects, conditionTypes: [made] }).conditionTypes).toEqual([made]);
  });
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}
