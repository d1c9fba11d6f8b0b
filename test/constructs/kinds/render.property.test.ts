import fc from 'fast-check';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  kinds,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { nameProblem } from '../../../constructs/kube/names';
import { typeKey } from '../../../constructs/kube/resource-type';
import { parseSpec, validateObject } from '../../../constructs/kind/validate';
import { childrenOf, objectOf } from './support';

const RUNS = 300;

const label = fc.oneof(fc.stringMatching(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/), fc.constantFrom('a', 'a'.repeat(63)));
const subdomain = fc.oneof(
  fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?([.][a-z0-9]{1,9}){0,4}$/),
  fc.constantFrom('0.1', 'a'.repeat(63)),
);
const image = fc.string({ minLength: 1, maxLength: 30 });
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const amount = fc.oneof(fc.nat(100), fc.stringMatching(/^[0-9]{1,3}([.][0-9]{1,2})?(m|k|Ki|Gi|e2)?$/));
const amounts = fc.record({ cpu: optional(amount), memory: optional(amount) });

const specs: ReadonlyMap<AnyKind, fc.Arbitrary<object>> = new Map<AnyKind, fc.Arbitrary<object>>([
  [HelloApp, fc.record({ image, size: optional(fc.nat()) })],
  [DemoMicroService, fc.record({ image })],
  [
    MicroServiceDeploy,
    fc.record({
      msName: label,
      fullName: label,
      version: fc.oneof(
        fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/),
        fc.constantFrom('1..2', '..', '1.', 'a...'),
      ),
      path: label,
      image,
      replicas: optional(fc.nat()),
      autoscaling: optional(fc.boolean()),
      needAuth: optional(fc.boolean()),
      idle: optional(fc.boolean()),
      config: optional(fc.string()),
      configSecretRef: optional(fc.record({ name: subdomain, key: fc.stringMatching(/^[-._a-zA-Z0-9]{1,10}$/) })),
      creationTimestamp: optional(fc.stringMatching(/^[0-9]{1,13}$/)),
      resourceRequirements: optional(fc.record({ requests: optional(amounts), limits: optional(amounts) })),
    }),
  ],
  [
    CronTab,
    fc.record({
      cronSpec: optional(
        fc.stringMatching(/^[0-5]?[0-9](-[0-5]?[0-9])? ([*]|[01]?[0-9])([/][1-9])? [*?] ([*]|[1-9]) [0-6*]$/),
      ),
      image: optional(image),
      timeZone: optional(fc.constantFrom('UTC', 'Europe/Berlin')),
      suspend: optional(fc.boolean()),
      command: optional(fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 })),
    }),
  ],
  [SampleResource, fc.record({ podImage: image })],
  [Foo, fc.record({ deploymentName: subdomain, replicas: optional(fc.integer({ min: 1, max: 10 })) })],
]);

const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$/;
const LABEL_KEY = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/** All label maps of a manifest: its own, its pods', its selectors'. */
function labelMaps(value: unknown, field = ''): Record<string, string>[] {
  if (typeof value !== 'object' || value === null) return [];
  if (field === 'labels' || field === 'matchLabels') return [value as Record<string, string>];
  const selects = field === 'selector' && !('matchLabels' in value);
  const below = Object.entries(value).flatMap(([name, inner]) => labelMaps(inner, name));
  return selects ? [value as Record<string, string>, ...below] : below;
}

/** Objects that the schema admits: what it refuses is thrown away, so the generators lean towards what it takes. */
function admitted(kind: AnyKind): fc.Arbitrary<KubeObject> {
  const spec = specs.get(kind);
  if (spec === undefined) throw new Error(`write a generator of ${kind.kind}`);
  return fc
    .tuple(fc.oneof(label, subdomain), spec)
    .map(([name, value]) => objectOf(kind, name, JSON.parse(JSON.stringify(value)) as object))
    .filter((object) => {
      try {
        validateObject(kind, object);
        return true;
      } catch {
        return false;
      }
    });
}

describe.each(kinds.map((kind) => [kind.kind, kind] as const))('any %s that the schema admits', (_, kind) => {
  it('renders valid names and labels of owned types only, twice the same bytes', () => {
    const owns = new Set(childTypes(kind).map(typeKey));
    fc.assert(
      fc.property(admitted(kind), (object) => {
        const before = JSON.stringify(object);
        const children = childrenOf(kind, object);
        expect(JSON.stringify(childrenOf(kind, object))).toBe(JSON.stringify(children));
        expect(JSON.stringify(object)).toBe(before);
        const names = children.map(({ type, manifest }) => `${typeKey(type)}/${manifest.metadata.name}`);
        expect(new Set(names).size).toBe(names.length);
        for (const { type, manifest } of children) {
          expect(owns).toContain(typeKey(type));
          const format = type.kind === 'Service' ? 'dns-1035-label' : 'dns-subdomain';
          expect(nameProblem(manifest.metadata.name, { format })).toBeUndefined();
          expect(manifest.metadata.namespace).toBe(object.metadata.namespace);
          for (const [key, value] of labelMaps(manifest).flatMap(Object.entries)) {
            expect(key).toMatch(LABEL_KEY);
            expect(value).toMatch(LABEL_VALUE);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('is read the same when it is read again', () => {
    fc.assert(
      fc.property(admitted(kind), (object) => {
        const spec: unknown = parseSpec(kind, object);
        expect(parseSpec(kind, { ...object, spec })).toEqual(spec);
      }),
      { numRuns: RUNS },
    );
  });
});

test('no version leads out of the log folder', () => {
  fc.assert(
    fc.property(admitted(MicroServiceDeploy), (object) => {
      const deployment = childrenOf(MicroServiceDeploy, object).find(({ type }) => type.kind === 'Deployment');
      const [, path] = /"hostPath":\{"path":"([^"]*)"/.exec(JSON.stringify(deployment?.manifest)) ?? [];
      expect(path).toMatch(/^\/data0\/logs\/[a-z][-a-z0-9]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/);
      expect(path).not.toContain('..');
    }),
    { numRuns: RUNS },
  );
});
