import { ApiObject, Chart } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { RenderError } from '../../../constructs/kube/errors';
import { defineKind, type AnyKind, type KindProps } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { renderChildren, renderShared, sharedKeys, withDefaults } from '../../../constructs/kind/render';

const spec = z.object({ image: z.string().optional().describe('Image.') });
const status = z.object({ image: z.string().optional().describe('Image in use.') });
type Props = KindProps<typeof spec, typeof status>;

function kindOf(children: Props['children'], further: Partial<Props> = {}): AnyKind {
  return defineKind({
    ...{ group: 'test.example.com', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' },
    ...{ description: 'A thing.', spec, status, owns: [owned.ConfigMap, owned.StatefulSet, owned.Service], children },
    ...further,
  });
}

const self = {
  apiVersion: 'test.example.com/v1',
  kind: 'Thing',
  metadata: { name: 'x', namespace: 'team' },
  spec: {},
  status: { image: 'i' },
};

/** What rendering throws; it must be a RenderError that says whose children they are. */
function problem(children: Props['children'], further: Partial<Props> = {}, object: object = self): string {
  try {
    renderChildren(kindOf(children, further), object as typeof self);
  } catch (error) {
    if (error instanceof RenderError && error.object === 'Thing team/x') return error.message;
    throw error;
  }
  throw new Error('it renders');
}

function configMap(scope: Construct, name: string, data: Record<string, string> = {}): kplus.k8s.KubeConfigMap {
  return new kplus.k8s.KubeConfigMap(scope, name, { metadata: { name }, data });
}

describe('an order among children, which the operator does not follow', () => {
  it.each<[string, (scope: Construct) => void, string]>([
    [
      'of objects',
      (scope) => configMap(scope, 'b').addDependency(configMap(scope, 'a')),
      'children/b after children/a',
    ],
    [
      'of constructs',
      (scope) => {
        const [a, b] = [new Construct(scope, 'first'), new Construct(scope, 'second')];
        configMap(a, 'a');
        configMap(b, 'b');
        b.node.addDependency(a);
      },
      'children/second after children/first',
    ],
    [
      'of charts',
      (scope) => {
        const chart = new Chart(scope, 'inner', { namespace: 'team' });
        chart.addDependency(configMap(scope, 'a'));
      },
      'children/inner after children/a',
    ],
    [
      'of a StatefulSet after something else than its own Service',
      (scope) => stateful(scope).node.addDependency(configMap(scope, 'a')),
      'children/set after children/a',
    ],
  ])('is refused: %s', (_, children, order) => {
    expect(problem(children)).toContain(`it orders ${order} by addDependency(), which the operator does not follow`);
  });

  it('is refused among shared children too', () => {
    const children = (scope: Construct): void => configMap(scope, 'b').addDependency(configMap(scope, 'a'));
    const group = { name: 'both', owns: [owned.ConfigMap], key: () => 'k', children };
    const kind = kindOf(() => undefined, { shared: [group] });
    expect(() => renderShared(kind, group, 'k', 'team')).toThrow(
      'by addDependency(), which the operator does not follow',
    );
  });

  it('is let pass between a StatefulSet of cdk8s-plus and its own Service, which that adds itself', () => {
    const kinds = renderChildren(
      kindOf((scope) => void stateful(scope)),
      self,
    ).map(({ manifest }) => manifest.kind);
    expect(kinds.sort()).toEqual(['Service', 'StatefulSet']);
  });

  function stateful(scope: Construct): kplus.StatefulSet {
    const service = new kplus.Service(scope, 'service', { metadata: { name: 's' }, ports: [{ port: 80 }] });
    return new kplus.StatefulSet(scope, 'set', {
      ...{ service, metadata: { name: 'set' }, containers: [{ image: 'i' }] },
    });
  }
});

describe('a status that only `observe` writes', () => {
  const words = "its kind renders children from self.status, which only the kind's own `observe` writes";
  const fromStatus: Props['children'] = (scope, object) => {
    configMap(scope, 'a', { image: object.status?.image ?? 'none' });
  };

  it.each<[string, object]>([
    ['where there is one', self],
    ['before there is one, as in a preview or a snapshot test', { ...self, status: undefined }],
  ])('may not be rendered from: %s', (_, object) => {
    expect(problem(fromStatus, {}, object)).toContain(words);
  });

  it('may not be what names a shared key', () => {
    const group = {
      ...{ name: 'one', owns: [owned.ConfigMap], children: () => undefined },
      key: (object: { status?: { image?: string | undefined } | undefined }) => object.status?.image ?? '',
    };
    const kind = kindOf(() => undefined, { shared: [group] });
    expect(() => sharedKeys(kind, withDefaults(kind, self))).toThrow(
      'its kind takes the key of the shared children "one" from self.status, which may be lost; take it from the spec',
    );
  });

  it('is no reason to refuse a copy of the object', () => {
    const kind = kindOf((scope, object) => {
      const { metadata, ...rest } = { ...object };
      configMap(scope, 'a', { name: metadata.name, rest: JSON.stringify(rest) });
    });
    expect(renderChildren(kind, self)[0]?.manifest).toMatchObject({
      data: { name: 'x', rest: '{"apiVersion":"test.example.com/v1","kind":"Thing","spec":{}}' },
    });
  });

  it('may be rendered from in a kind with effects, which write it too', () => {
    const effect: Effect<unknown> = {
      ...{ name: 'find', phase: 'apply', plan: 'test.find', timeoutSeconds: 60 },
      input: () => ({}),
      maxAttempts: () => 1,
    };
    const [child] = renderChildren(kindOf(fromStatus, { effects: [effect] }), self);
    expect(child?.manifest).toMatchObject({ data: { image: 'i' } });
  });
});

describe('metadata that the kind cannot set', () => {
  const child =
    (metadata: object): Props['children'] =>
    (scope) => {
      const props = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', ...metadata } };
      new ApiObject(scope, 'a', props);
    };

  it.each<[string, unknown]>([
    ['uid', '1'],
    ['resourceVersion', '5'],
    ['generation', 0],
    ['creationTimestamp', '2026-01-01T00:00:00Z'],
    ['deletionTimestamp', '2026-01-01T00:00:00Z'],
    ['deletionGracePeriodSeconds', 0],
    ['selfLink', '/api'],
    ['managedFields', [{ manager: 'kubectl' }]],
  ])('is refused: %s, which the server sets', (field, value) => {
    expect(problem(child({ [field]: value }))).toMatch(
      new RegExp(String.raw`ConfigMap "a" has metadata that .*\n {2}metadata\.${field}: only the API server sets it$`),
    );
  });

  it("is refused: all of another object's at once, with each path", () => {
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'x', uid: '1' };
    const annotations = { 'kindred.dev/hash': 'x', 'kindred.dev/owner-uid': 'u', 'kindred.dev/adopt': 'true', a: 'b' };
    const text = problem(child({ uid: '1', resourceVersion: '5', ownerReferences: [owner], annotations }));
    expect(text.split('\n').slice(1)).toEqual([
      '  metadata.uid: only the API server sets it',
      '  metadata.resourceVersion: only the API server sets it',
      '  metadata.ownerReferences: the operator sets it: the object owns its children',
      '  metadata.annotations["kindred.dev/owner-uid"]: only the operator sets it',
      '  metadata.annotations["kindred.dev/hash"]: only the operator sets it',
    ]);
  });

  it('is refused of shared children too', () => {
    const group = {
      ...{ name: 'one', owns: [owned.ConfigMap], key: () => 'k' },
      children: (scope: Construct) => child({ resourceVersion: '5' })(scope, self),
    };
    const kind = kindOf(() => undefined, { shared: [group] });
    expect(() => renderShared(kind, group, 'k', 'team')).toThrow('metadata.resourceVersion: only the API server sets');
  });

  it('is let pass as null, which is left out, and beside other annotations, labels and finalizers', () => {
    const metadata = { creationTimestamp: null, labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['e.f/g'] };
    expect(renderChildren(kindOf(child(metadata)), self).map(({ manifest }) => manifest.metadata)).toEqual([
      { name: 'a', namespace: 'team', labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['e.f/g'] },
    ]);
  });
});
