import fc from 'fast-check';
import { z } from 'zod';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { convertObject, threeWayMerge, jsonEquals, type ConvertOptions } from '../../../constructs/kind/conversion';
import { Shop } from './versions-kind';

const group = 'test.example.com';

function object(kind: AnyKind, version: string, spec: unknown): KubeObject {
  return { apiVersion: `${group}/${version}`, kind: kind.kind, metadata: { name: 'x' }, spec };
}

function chain(kind: AnyKind, start: KubeObject, versions: readonly string[], options?: ConvertOptions): KubeObject {
  return versions.reduce((now, version) => convertObject(kind, now, `${group}/${version}`, options), start);
}

const text = fc.string({ minLength: 1, maxLength: 5 });
const optional = { requiredKeys: ['image'] as ['image'] };
const shopSpecs: Readonly<Record<string, fc.Arbitrary<object>>> = {
  v1: fc.record(
    {
      image: text,
      size: fc.nat(60),
      limits: fc.record({ cpu: text, memory: text }, { requiredKeys: [] }),
      ports: fc.array(fc.nat(9), { maxLength: 3 }),
    },
    optional,
  ),
  v1beta1: fc.record({ image: text, replicas: fc.nat(10), memory: text }, optional),
  v1alpha1: fc.record({ image: text, owner: text }, optional),
};
const versionNames = Object.keys(shopSpecs);
const aVersion = fc.constantFrom(...versionNames);
const written = aVersion.chain((version) =>
  (shopSpecs[version] as fc.Arbitrary<object>).map((spec) => ({ version, spec })),
);

/** What the version's own schema makes of a spec: with defaults. */
function normal(kind: AnyKind, version: string, spec: unknown): unknown {
  const views = [kind, ...kind.versions] as { version: string; spec: z.ZodType }[];
  return views.find((view) => view.version === version)?.spec.parse(spec);
}

test('what is written in a version reads the same in it after any conversions', () => {
  fc.assert(
    fc.property(written, fc.array(aVersion, { maxLength: 4 }), ({ version, spec }, path) => {
      const back = chain(Shop, object(Shop, version, spec), [...path, version]);
      const isMoved = path.some((other) => other !== version);
      expect(back).toEqual(object(Shop, version, isMoved ? normal(Shop, version, spec) : spec));
    }),
    { numRuns: 300 },
  );
});

test('without a required field, a spec is converted to what of the whole one does not depend on it', () => {
  fc.assert(
    fc.property(written, aVersion, ({ version, spec }, to) => {
      fc.pre(to !== version);
      const { image: _, ...rest } = spec as { image: string };
      const { image: __, ...expected } = chain(Shop, object(Shop, version, spec), [to]).spec as { image: string };
      expect(chain(Shop, object(Shop, version, rest), [to], { incomplete: true }).spec).toEqual(expected);
    }),
    { numRuns: 200 },
  );
});

test('an incomplete spec reads the same in its version after any conversions', () => {
  fc.assert(
    fc.property(written, fc.array(aVersion, { maxLength: 4 }), ({ version, spec }, path) => {
      const { image: _, ...rest } = spec as { image: string };
      // The default of another version may have come in.
      const defaults = { size: 1, replicas: 1 };
      const back = chain(Shop, object(Shop, version, rest), [...path, version], { incomplete: true });
      expect({ ...defaults, ...(back.spec as object) }).toEqual({ ...defaults, ...rest });
    }),
    { numRuns: 300 },
  );
});

/** A kind whose conversions are any functions at all, lossy and wild ones included. */
function wildKind(toCurrent: (spec: unknown) => Wild, fromCurrent: (spec: unknown) => Wild): AnyKind {
  const spec = z.object({
    a: z.int32().optional().describe('A.'),
    b: z
      .object({ c: z.int32().optional().describe('C.'), d: z.int32().optional().describe('D.') })
      .optional()
      .describe('B.'),
  });
  return defineKind({
    ...{ group, version: 'v1', kind: 'Wild', plural: 'wilds', scope: 'Namespaced', description: 'Wild.' },
    spec,
    owns: [],
    children: () => undefined,
    versions: [{ version: 'v1beta1', spec, toCurrent, fromCurrent }],
  });
}

interface Wild {
  a?: number;
  b?: { c?: number; d?: number };
}

const few = fc.nat(2);
const wildSpec: fc.Arbitrary<Wild> = fc.record(
  { a: few, b: fc.record({ c: few, d: few }, { requiredKeys: [] }) },
  { requiredKeys: [] },
);

test('nothing is lost whatever the functions do, and whatever was changed before', () => {
  const functions = fc.tuple(fc.func<[unknown], Wild>(wildSpec), fc.func<[unknown], Wild>(wildSpec));
  const edits = fc.array(wildSpec, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(functions, edits, ([toCurrent, fromCurrent], specs) => {
      const kind = wildKind(toCurrent, fromCurrent);
      let now = object(kind, 'v1', {});
      specs.forEach((spec, i) => {
        const [here, there] = i % 2 === 0 ? ['v1', 'v1beta1'] : ['v1beta1', 'v1'];
        // Somebody replaces the whole spec, in one version after the other.
        now = { ...chain(kind, now, [here]), spec };
        const again = chain(kind, now, [there, here]);
        expect(again.spec).toEqual(spec);
      });
    }),
    { numRuns: 500 },
  );
});

test('a merge with no change gives what was kept, and with nothing to restore what is now', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (kept, now) => {
      expect(threeWayMerge(kept, now, now)).toEqual(kept);
      expect(jsonEquals(threeWayMerge(kept, kept, now), now)).toBe(true);
    }),
  );
});

test('sameJson is equality of JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      expect(jsonEquals(a, JSON.parse(JSON.stringify(a)))).toBe(true);
      if (jsonEquals(a, b)) expect(JSON.parse(JSON.stringify(a))).toEqual(JSON.parse(JSON.stringify(b)));
    }),
  );
});
