import { App, Chart, JsonPatch } from 'cdk8s';
import { z } from 'zod';
import { InvalidObjectError } from '../../../constructs/kube/errors';
import { defineKind } from '../../../constructs/kind/kind';
import { CustomResource } from '../../../constructs/crd';
import { KitchenSink } from './kitchen-sink';

const chart = (namespace?: string): Chart =>
  new Chart(new App(), 'chart', namespace === undefined ? {} : { namespace });

const Global = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'Global',
  plural: 'globals',
  scope: 'Cluster',
  description: 'An object of the cluster.',
  spec: z.object({ a: z.int().optional().describe('A.') }),
  owns: [],
  children: () => undefined,
});

test('emits the spec as it was written', () => {
  const object = new CustomResource(chart('shop'), 'sink', {
    kind: KitchenSink,
    metadata: { name: 'web', labels: { a: 'b' } },
    spec: { label: 'web', nullable: null, ranges: [{ low: 1, high: 2 }] },
  });
  expect(object.toJson()).toEqual({
    apiVersion: 'test.kindred.dev/v1',
    kind: 'KitchenSink',
    metadata: { name: 'web', namespace: 'shop', labels: { a: 'b' } },
    spec: { label: 'web', nullable: null, ranges: [{ low: 1, high: 2 }] },
  });
});

test('is refused where it is constructed, with all that is wrong', () => {
  const spec = { label: 'Web', colour: 'red' } as { label: string };
  const act = (): unknown =>
    new CustomResource(chart('shop'), 'sink', { kind: KitchenSink, metadata: { name: 'a.b' }, spec });
  expect(act).toThrow(InvalidObjectError);
  expect(act).toThrow(
    /^KitchenSink shop\/a\.b is invalid:\n {2}metadata\.name: .*\n {2}spec\.colour: is no field.*\n {2}spec\.label: must be at most 63/,
  );
});

test('is checked again after JSON patches', () => {
  const object = new CustomResource(chart(), 'sink', {
    kind: KitchenSink,
    metadata: { name: 'web' },
    spec: { label: 'web' },
  });
  object.addJsonPatch(JsonPatch.replace('/spec/label', 'Web'));
  expect(() => object.toJson() as unknown).toThrow(InvalidObjectError);
});

test('of a cluster-scoped kind bears no namespace, and needs no spec where nothing is required', () => {
  const object = new CustomResource(chart('shop'), 'global', { kind: Global, metadata: { name: 'one' } });
  expect(object.toJson()).toEqual({ apiVersion: 'test.example.com/v1', kind: 'Global', metadata: { name: 'one' } });
});

test('takes a name from its path', () => {
  const object = new CustomResource(chart(), 'global', { kind: Global });
  expect(object.name).toMatch(/^chart-global-c[a-z0-9]+$/);
});
