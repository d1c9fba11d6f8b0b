import { ApiObject, type ApiObjectProps } from 'cdk8s';
import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { unrenderedNotices, unrenderedTypes } from '../../cli/unrendered-types';
import { defineKind, type AnyKind } from '../../constructs/kind/kind';
import { owned } from '../../constructs/kube/resource-type';
import { allKinds } from '../../constructs/kinds';

const common = {
  ...{ group: 'example.com', version: 'v1', kind: 'Box', plural: 'boxes', description: 'A box.' },
  scope: 'Namespaced',
} as const;
const spec = z.object({ manifests: z.array(z.string().max(1000).describe('One.')).max(9).describe('Manifests.') });

/** A generic kind: it renders whatever its spec says. */
const box = (manifests: readonly (readonly object[])[], more: Partial<AnyKind> = {}): AnyKind =>
  defineKind({
    ...common,
    spec,
    owns: [owned.Secret, owned.ConfigMap],
    samples: manifests.map((list, i) => ({
      name: `s${String(i)}`,
      spec: { manifests: list.map((manifest) => JSON.stringify(manifest)) },
    })),
    children(scope, self: { readonly spec: z.output<typeof spec> }) {
      self.spec.manifests.forEach((text, i) => new ApiObject(scope, `m${i}`, JSON.parse(text) as ApiObjectProps));
    },
    ...more,
  });
const child = (kind: string, more: object = {}): object => ({
  ...{ apiVersion: 'v1', kind, metadata: { name: 'x' }, ...more },
});
const names = (kind: AnyKind): readonly string[] => unrenderedTypes(kind).map(({ kind: name }) => name);

test('every type is rendered by a sample of one of the kinds that come with Kindred', () => {
  expect(unrenderedNotices(allKinds)).toEqual([]);
});

test('a type that no sample renders is named, with what to do', () => {
  expect(names(box([[child('ConfigMap')]]))).toEqual(['Secret']);
  expect(names(box([[child('ConfigMap')], [child('Secret')]]))).toEqual([]);
  expect(names(box([]))).toEqual(['Secret', 'ConfigMap']);
  expect(unrenderedNotices([box([[child('ConfigMap')]]), box([[child('ConfigMap'), child('Secret')]])])).toEqual([
    'No sample of Box renders v1/Secret, so its operator may have permissions to create, change and delete that it ' +
      'does not need. Add a sample that renders it, or leave it out of `owns`; what earlier versions rendered belongs ' +
      'in `formerlyOwned`.',
  ]);
});

test('types that were owned formerly are not reported, shared ones are', () => {
  const share = (name: string): AnyKind['shared'] => [
    {
      ...{ name: 'account', owns: [owned.Service], key: () => name },
      children: (scope, key) =>
        void (key === 'none' || new k8s.KubeService(scope, 'service', { metadata: { name: key } })),
    },
  ];
  const samples = [[child('ConfigMap'), child('Secret')]];
  expect(names(box(samples, { formerlyOwned: [owned.Deployment] }))).toEqual([]);
  expect(names(box(samples, { shared: share('one') }))).toEqual([]);
  expect(names(box(samples, { shared: share('none') }))).toEqual(['Service']);
});

test('a kind whose children follow from its status is not reported: no sample has one', () => {
  const effects: AnyKind['effects'] = [
    {
      ...{ name: 'make', phase: 'apply', plan: 'box.make', timeoutSeconds: 60 },
      ...{ input: () => ({}), maxAttempts: () => 1 },
    },
  ];
  const kind = box([[]], {
    effects,
    children: (scope, { status }) =>
      void (status === undefined || new k8s.KubeConfigMap(scope, 'a', { metadata: { name: 'a' } })),
  });
  expect(names(kind)).toEqual([]);
  expect(names(box([[]], { effects }))).toEqual(['Secret', 'ConfigMap']);
});

test('a sample that is wrong is no reason for a notice, and an error where the page is made', () => {
  const wrong = box([[child('Deployment', { apiVersion: 'apps/v1' })]]);
  expect(unrenderedNotices([wrong])).toEqual([]);
  expect(() => unrenderedTypes(wrong)).toThrow(
    'Box samples/s0: it renders apps/v1/Deployment "x", which its kind does not own',
  );
});
