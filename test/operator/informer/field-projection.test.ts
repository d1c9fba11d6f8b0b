import * as fc from 'fast-check';
import { HASH_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { UnownedFields } from '../../../operator/informer/field-ownership';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { DroppedFields, FieldProjection } from '../../../operator/informer/field-projection';
import { type CacheEntry } from '../../../operator/informer/projection';
import { ChildComparison } from '../../../operator/apply/diff';

const HASH = 'abc';

function child(body: object, hash = HASH): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop', annotations: { [HASH_ANNOTATION]: hash } },
    ...body,
  };
}

function entry(object: KubeObject, unowned?: CacheEntry['facts']['unowned']): CacheEntry {
  return { object, facts: { createdByUpdate: false, ...(unowned !== undefined && { unowned }) } };
}

describe('what is kept of a child', () => {
  const rendered = child({
    spec: { template: { spec: { containers: [{ name: 'a', image: 'b', ports: [{ containerPort: 80 }] }] } } },
  });
  const live = child({
    spec: {
      replicas: 3,
      progressDeadlineSeconds: 600,
      minReadySeconds: 1,
      template: {
        spec: {
          dnsPolicy: 'ClusterFirst',
          containers: [
            { name: 'a', image: 'b', imagePullPolicy: 'Always', ports: [{ containerPort: 80, protocol: 'UDP' }] },
            { name: 'injected', image: 'c', tty: true },
          ],
        },
      },
    },
    status: { readyReplicas: 2 },
  });

  test('is what is rendered, what its state is judged by, the status, and the keys of lists', () => {
    const projection = new FieldProjection();
    expect(projection.register(HASH, rendered)).toBe(true);
    expect(projection.project(entry(live)).object).toEqual(
      child({
        spec: {
          replicas: 3,
          progressDeadlineSeconds: 600,
          template: {
            spec: {
              containers: [
                { name: 'a', image: 'b', ports: [{ containerPort: 80, protocol: 'UDP' }] },
                { name: 'injected', image: 'c' },
              ],
            },
          },
        },
        status: { readyReplicas: 2 },
      }),
    );
  });

  test('is everything while its shape is not known', () => {
    const projection = new FieldProjection();
    expect(projection.project(entry(live)).object).toBe(live);
    projection.register('another', rendered);
    expect(projection.project(entry(live)).object).toBe(live);
    projection.register(HASH, rendered);
    projection.forget(HASH);
    expect(projection.project(entry(live)).object).toBe(live);
    expect(projection.size).toBe(1);
  });

  test.each([
    ['a rendered field', { spec: { template: { spec: { containers: { 0: { image: true } } } } } }],
    ['a map around rendered fields', { spec: { template: true } }],
    ['all of it', true],
  ] as const)('is everything while somebody else owns %s', (_, unowned) => {
    const projection = new FieldProjection();
    projection.register(HASH, rendered);
    expect(projection.project(entry(live, unowned))).toEqual({ object: live, facts: entry(live, unowned).facts });
  });

  test.each([
    ['a default', { spec: { template: { spec: { dnsPolicy: true } } } }],
    ['a field that its state is judged by', { spec: { replicas: true } }],
    ['an owner reference', { metadata: { ownerReferences: { 1: true } } }],
    ['a list item', { spec: { template: { spec: { containers: { 1: true } } } } }],
    ['a field of a list item', { spec: { template: { spec: { containers: { 1: { tty: true } } } } } }],
  ] as const)('is not more when somebody else owns %s', (_, unowned) => {
    const projection = new FieldProjection();
    projection.register(HASH, rendered);
    const { object, isReduced } = projection.project(entry(live, unowned));
    expect(object).toEqual(projection.project(entry(live)).object);
    expect(isReduced).toBe(true);
  });

  test('has no fields that are not owned but those that are rendered, and the metadata', () => {
    const projection = new FieldProjection();
    projection.register(HASH, rendered);
    const metadata = { ownerReferences: { 1: true } } as const;
    const containers = { 0: { tty: true, image: true }, 1: true } as const;
    const unowned = {
      metadata,
      spec: { replicas: true, template: { spec: { dnsPolicy: true, containers } } },
    } as const;
    const kept = { metadata, spec: { template: { spec: { containers: { 0: { image: true }, 1: true } } } } };
    expect(projection.project(entry(live, unowned)).facts).toEqual({ createdByUpdate: false, unowned: kept });
    const defaults = { spec: { replicas: true, template: { spec: { dnsPolicy: true } } } } as const;
    expect(projection.project(entry(live, defaults)).facts).toEqual({ createdByUpdate: false });
  });

  test('has fields that are not owned also where another item of a list is rendered empty', () => {
    const projection = new FieldProjection();
    const security = { capabilities: { add: ['A'] } };
    projection.register(
      HASH,
      child({ spec: { containers: [{ securityContext: security }, { securityContext: {} }] } }),
    );
    const unowned = { spec: { containers: { 0: { securityContext: { capabilities: { add: true } } } } } } as const;
    const found = projection.project(entry(live, unowned));
    expect(found).toEqual({ object: live, facts: { createdByUpdate: false, unowned } });
  });

  test('is everything while somebody else owns a map under a name of digits, or one called metadata', () => {
    const projection = new FieldProjection();
    const rich = child({ spec: { 80: { a: { b: 1 } }, metadata: { ref: { a: 1 } } } });
    projection.register(HASH, rich);
    const fields: readonly UnownedFields[] = [{ spec: { 80: true } }, { spec: { metadata: { ref: true } } }];
    for (const unowned of fields) expect(projection.project(entry(rich, unowned)).isReduced).toBeUndefined();
  });

  test('stays as it is when it is reduced already', () => {
    const projection = new FieldProjection();
    projection.register(HASH, rendered);
    const once = projection.project(entry(live));
    expect(projection.project(once)).toBe(once);
  });

  test('is learnt once', () => {
    const projection = new FieldProjection();
    projection.register(HASH, rendered);
    expect(projection.register(HASH, rendered)).toBe(false);
  });
});

test('a comparison with what is kept finds what one with the whole finds', () => {
  // A comparison reads `__proto__` as JavaScript does; no field of the API is called that.
  const value = fc.jsonValue({ maxDepth: 4 }).filter((json) => !JSON.stringify(json).includes('__proto__'));
  const name = fc.string().filter((text) => text !== '__proto__');
  fc.assert(
    fc.property(fc.dictionary(name, value), fc.dictionary(name, value), (rendered, live) => {
      const projection = new FieldProjection();
      const applied = child({ spec: rendered });
      const whole = child({ spec: { ...rendered, ...live } });
      projection.register(HASH, applied);
      const comparison = new ChildComparison(applied, new DroppedFields());
      const kept = projection.project(entry(whole)).object;
      expect(comparison.firstDifference(applied, kept)).toBe(comparison.firstDifference(applied, whole));
    }),
    { numRuns: 2000 },
  );
});

describe('what the events of a cache take along', () => {
  const old = child({ spec: { replicas: 1 } }, 'old');
  const fresh = child({ spec: { replicas: 2 } }, 'fresh');
  let projection: FieldProjection;
  let cache: ObjectCache;

  beforeEach(() => {
    projection = new FieldProjection();
    cache = new ObjectCache({ apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', scope: 'Namespaced' });
    cache.addObserver((event) => projection.onCacheEvent(event));
    for (const [hash, { spec }] of [['old', old] as const, ['fresh', fresh] as const])
      projection.register(hash, child({ spec }, hash));
    cache.applyChange(at(old, '1'));
  });

  const at = (object: KubeObject, resourceVersion: string, uid = 'u'): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, uid, resourceVersion },
  });

  test('is the former hash of a child whose write took effect though its answer was lost', () => {
    cache.applyChange(at(fresh, '2'));
    expect(projection.size).toBe(1);
    expect(projection.register('fresh', fresh)).toBe(false);
  });

  test('is nothing while the hash stays', () => {
    cache.applyChange(at({ ...old, status: { replicas: 1 } }, '2'));
    expect(projection.size).toBe(2);
  });

  test('is both hashes of a child that was deleted after a change that was never told', () => {
    cache.applyDeletion(at(fresh, '3'));
    expect(projection.size).toBe(0);
  });

  test('is that of a child that a list shows no more, though a write to it is under way', async () => {
    await cache
      .trackWrite(old.metadata, () => {
        cache.replace([], '5');
        return Promise.reject(new Error('lost'));
      })
      .catch(() => undefined);
    expect(projection.size).toBe(1);
    expect(projection.register('fresh', fresh)).toBe(false);
  });
});
