import { z } from 'zod';
import { ConversionError, type KindDefinitionError } from '../../../constructs/kube/errors';
import { defineKind } from '../../../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { CONVERSION_ANNOTATION, convertObject } from '../../../constructs/kind/conversion';
import { Shop } from './versions-kind';

const [v1, v1beta1, v1alpha1] = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `test.example.com/${version}`) as [
  string,
  string,
  string,
];

const metadata: ObjectMeta = {
  name: 'corner',
  namespace: 'default',
  uid: 'f3a1',
  resourceVersion: '7',
  generation: 2,
  creationTimestamp: '2025-01-01T00:00:00Z',
  labels: { app: 'corner' },
  annotations: { note: 'mine' },
  finalizers: ['example.com/f'],
  ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u' }],
};

function shop(apiVersion: string, spec: object | undefined, meta: ObjectMeta = metadata): KubeObject {
  return { apiVersion, kind: 'Shop', metadata: meta, ...(spec === undefined ? {} : { spec }) };
}

function withSpec(object: KubeObject, spec: object): KubeObject {
  return { ...object, spec: { ...(object.spec as object), ...spec } };
}

function keptIn(object: KubeObject): unknown {
  const text = object.metadata.annotations?.[CONVERSION_ANNOTATION];
  return text === undefined ? undefined : JSON.parse(text);
}

describe('converting', () => {
  test('an object of the desired version returns it as it is', () => {
    const object = shop(v1, { image: 'a' });
    expect(convertObject(Shop, object, v1)).toBe(object);
  });

  test('changes apiVersion and spec; the rest of the metadata and the status stay', () => {
    const object = { ...shop(v1beta1, { image: 'a', replicas: 3 }), status: { observedGeneration: 2 } };
    expect(convertObject(Shop, object, v1)).toEqual({ ...object, apiVersion: v1, spec: { image: 'a', size: 3 } });
  });

  test('does not change its input', () => {
    const object = Object.freeze(
      shop(v1, Object.freeze({ image: 'a', limits: { cpu: '1' } }), Object.freeze(metadata)),
    );
    expect(() => convertObject(Shop, object, v1beta1)).not.toThrow();
  });

  test('keeps aside what the other version cannot hold, for as long as it is needed', () => {
    const written = shop(v1, { image: 'a', size: 2, limits: { cpu: '1', memory: '2Gi' } });
    const old = convertObject(Shop, written, v1beta1);
    expect(old.spec).toEqual({ image: 'a', replicas: 2, memory: '2Gi' });
    expect(keptIn(old)).toEqual({ [v1]: written.spec });
    expect(convertObject(Shop, old, v1)).toEqual(written);
  });

  test('needs no annotation where nothing is lost', () => {
    const old = convertObject(Shop, shop(v1, { image: 'a', size: 2 }, { name: 'x' }), v1beta1);
    expect(old.metadata).toEqual({ name: 'x' });
  });

  test('a change in the other version is taken over, and the rest restored', () => {
    const old = convertObject(
      Shop,
      shop(v1, { image: 'a', size: 2, limits: { cpu: '1', memory: '2Gi' }, ports: [1] }),
      v1beta1,
    );
    const changed = withSpec(old, { replicas: 5, memory: '4Gi' });
    expect(convertObject(Shop, changed, v1)).toEqual(
      shop(v1, { image: 'a', size: 5, limits: { cpu: '1', memory: '4Gi' }, ports: [1] }),
    );
  });

  test('between two other versions goes through the current one', () => {
    const written = shop(v1alpha1, { image: 'a', owner: 'ann' });
    const other = convertObject(Shop, written, v1beta1);
    expect(other.spec).toEqual({ image: 'a', replicas: 1 });
    expect(convertObject(Shop, withSpec(other, { image: 'b' }), v1alpha1).spec).toEqual({ image: 'b', owner: 'ann' });
    expect(convertObject(Shop, other, v1alpha1)).toEqual(written);
  });

  test('an object that the old version does not admit can be read in it, and goes back as it came', () => {
    const written = shop(v1, { image: 'a', size: 50 });
    const old = convertObject(Shop, written, v1beta1);
    expect(old.spec).toEqual({ image: 'a', replicas: 50 });
    expect(convertObject(Shop, old, v1)).toEqual(written);
    expect(() => convertObject(Shop, withSpec(old, { image: 'b' }), v1)).toThrow(
      /^Shop default\/corner cannot be converted to test.example.com\/v1:\n {2}spec.replicas: /,
    );
  });

  test.each(['no JSON', 'null', '3', '[]', '{"test.example.com/v1":{"size":"x"}}', '{"__proto__":{"size":3}}'])(
    'does not mind a broken annotation: %s',
    (text) => {
      const annotations = { [CONVERSION_ANNOTATION]: text };
      const object = shop(v1beta1, { image: 'a', replicas: 3 }, { name: 'x', annotations });
      expect(convertObject(Shop, object, v1).spec).toEqual({ image: 'a', size: 3 });
    },
  );

  test('an absent spec counts as an empty one, and stays absent where it may', () => {
    const Bare = defineKind({
      ...bare,
      spec: z.object({ a: z.int32().optional().describe('A.') }),
      versions: [
        {
          version: 'v1beta1',
          spec: z.object({ b: z.int32().optional().describe('B.') }),
          toCurrent: ({ b }) => ({ a: b }),
          fromCurrent: ({ a }) => ({ b: a }),
        },
      ],
    });
    const object = { apiVersion: v1, kind: 'Bare', metadata: { name: 'x' } };
    expect(convertObject(Bare, object, v1beta1)).toEqual({ ...object, apiVersion: v1beta1 });
  });
});

describe('refused, with kind, object and field', () => {
  const refusal = (object: KubeObject, desired: string, kind = Shop): string => {
    try {
      convertObject(kind, object, desired);
    } catch (error) {
      expect(error).toBeInstanceOf(ConversionError);
      return String(error).replace('ConversionError: ', '');
    }
    throw new Error('it was converted');
  };

  test.each<[string, KubeObject, string, string]>([
    [
      'a version that there is not',
      shop(v1, { image: 'a' }),
      'test.example.com/v2',
      'apiVersion: Shop has no test.example.com/v2; it has',
    ],
    [
      'an object of one',
      shop('other.example.com/v1', { image: 'a' }),
      v1,
      'apiVersion: Shop has no other.example.com/v1',
    ],
    ['another kind', { ...shop(v1, {}), kind: 'Stall' }, v1beta1, 'kind: it is a Stall; a Shop is expected'],
    ['a spec without a required field', shop(v1beta1, {}), v1, 'spec.image: is required'],
    [
      'a field of another type',
      shop(v1, { image: 'a', limits: { cpu: 3 } }),
      v1beta1,
      'spec.limits.cpu: Invalid input',
    ],
  ])('%s', (_, object, desired, message) => {
    expect(refusal(object, desired)).toContain(message);
    expect(refusal(object, desired)).toContain(`default/corner cannot be converted to ${desired}:\n`);
  });

  test.each<[string, () => { a: number }, string]>([
    [
      'a function that throws',
      () => {
        throw new Error('no');
      },
      'spec: toCurrent of v1beta1 threw Error: no (versions.test.ts:',
    ],
    ['a result that does not fit the current schema', () => ({ a: 11 }), 'spec.a: Too big'],
  ])('%s', (_, toCurrent, message) => {
    const Strict = defineKind({
      ...bare,
      kind: 'Shop',
      spec: z.object({ a: z.int32().max(10).describe('A.') }),
      versions: [{ version: 'v1beta1', spec: z.object({}), toCurrent, fromCurrent: () => ({}) }],
    });
    expect(refusal(shop(v1beta1, {}), v1, Strict as unknown as typeof Shop)).toContain(message);
  });
});

const bare = {
  group: 'test.example.com',
  version: 'v1',
  kind: 'Bare',
  plural: 'bares',
  scope: 'Namespaced' as const,
  description: 'A kind.',
  owns: [],
  children: () => undefined,
};

describe('the definition', () => {
  const other = (version: string, more: object = {}) => ({
    version,
    spec: z.object({}),
    toCurrent: () => ({}),
    fromCurrent: () => ({}),
    ...more,
  });
  const problems = (...versions: ReturnType<typeof other>[]): readonly string[] => {
    try {
      defineKind({ ...bare, spec: z.object({}), versions });
    } catch (error) {
      return (error as KindDefinitionError).problems.map(({ path, message }) => `${path}: ${message}`);
    }
    return [];
  };

  test('takes versions in order', () => {
    expect(problems(other('v2'), other('v2beta2'), other('v2beta1'), other('v1beta1'), other('v1alpha1'))).toEqual([]);
    expect(Object.isFrozen(Shop.versions)).toBe(true);
    expect(Shop.versions[0]).toMatchObject({ apiVersion: v1beta1, served: true, deprecated: true });
  });

  test.each([
    ['twice the same', [other('v1beta1'), other('v1beta1')], 'versions[1].version: "v1beta1" stands twice'],
    ['its own', [other('v1')], `versions[0].version: "v1" is the kind's own version; list the others only`],
    ['no version', [other('beta')], 'versions[0].version: "beta" must look like v1, v1beta1 or v2alpha3'],
    [
      'another order',
      [other('v1alpha1'), other('v1beta2'), other('v1beta10'), other('v2')],
      `versions: must stand in the server's order of priority: v2, v1beta10, v1beta2, v1alpha1`,
    ],
    [
      'a warning without deprecation',
      [other('v1beta1', { deprecationWarning: 'x' })],
      'versions[0].deprecationWarning: the version is not deprecated; set deprecated: true',
    ],
    [
      'a warning of two lines',
      [other('v1beta1', { deprecated: true, deprecationWarning: 'a\nb' })],
      'versions[0].deprecationWarning: must be one line of 1 to 256 bytes',
    ],
    [
      'a column that leads nowhere',
      [other('v1beta1', { columns: [{ name: 'X', type: 'string', jsonPath: '.spec.x' }] })],
      'versions[0].columns[0].jsonPath: .spec.x of the column X is no field; write a path such as .spec.image',
    ],
    [
      'a schema that is not structural',
      [other('v1beta1', { spec: z.object({ a: z.date().describe('A.') }) })],
      'versions[0].spec.a: a Date is no JSON; use z.iso.datetime()',
    ],
  ])('refuses %s', (_, versions, problem) => {
    expect(problems(...versions)).toEqual([problem]);
  });

  test('infers the types of each version', () => {
    defineKind({
      ...bare,
      spec: z.object({ a: z.string().describe('A.') }),
      versions: [
        {
          version: 'v1beta1',
          spec: z.object({ b: z.string().describe('B.') }),
          // @ts-expect-error -- there is no c
          toCurrent: ({ c }) => ({ a: String(c) }),
          // @ts-expect-error -- b is a string
          fromCurrent: ({ a }) => ({ b: a.length }),
        },
        {
          version: 'v1alpha1',
          spec: z.object({ n: z.int32().describe('N.') }),
          toCurrent: ({ n }) => ({ a: n.toFixed() }),
          fromCurrent: ({ a }) => ({ n: a.length }),
        },
      ],
    });
  });
});
