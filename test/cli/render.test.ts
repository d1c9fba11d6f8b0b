import { ApiObject } from 'cdk8s';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { parseObjects } from '../../cli/objects';
import { renderObjects, renderText } from '../../cli/render';
import { renderChildren } from '../../constructs/kind/render';
import { defineKind } from '../../constructs/kind/kind';
import { Foo, MicroServiceDeploy, allKinds } from '../../constructs/kinds';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { Shop } from '../constructs/kind/versions-kind';

const options = { kinds: allKinds, namespace: 'default' };

function render(yaml: string, output: 'yaml' | 'json' | 'tree' = 'yaml', kinds = options.kinds): string {
  return renderText(renderObjects(parseObjects(yaml, 'mine.yaml'), { ...options, kinds }), output);
}

const foo = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: { name: a }
spec: { deploymentName: web, replicas: 2 }
`;
const instance = (name: string): string => `
apiVersion: custom.ops/v1
kind: MicroServiceDeploy
metadata: { name: ${name}, namespace: shops }
spec: { msName: shop, fullName: ${name}, version: '1.0', path: v1, image: 'shop:1', autoscaling: true }
`;

test('the children are the same objects that the operator renders', () => {
  const object = { ...(parse(foo) as KubeObject), metadata: { name: 'a', namespace: 'default' } };
  const expected = renderChildren(Foo, object).map(({ manifest }) => manifest);
  expect(parseAllDocuments(render(foo)).map((document) => document.toJS() as unknown)).toEqual(expected);
  expect(JSON.parse(render(foo, 'json'))).toEqual({ apiVersion: 'v1', kind: 'List', items: expected });
  expect(render(foo)).toMatch(/^# of Foo default\/a\napiVersion: apps\/v1\nkind: Deployment\n/);
});

test('what several objects share stands once', () => {
  const text = render(`${instance('one')}---${instance('two')}`);
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
  const services = objects.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name);
  expect(services).toHaveLength(new Set(services).size);
  expect(objects.filter(({ kind }) => kind === 'ServiceAccount')).toHaveLength(1);
  expect(text.match(/^# shared by the MicroServiceDeploy objects of "shop"$/gm)).toHaveLength(2);
});

test('the tree shows who owns what, and what is left to others', () => {
  expect(render(`${foo}---${instance('one')}`, 'tree')).toBe(
    [
      'Foo default/a',
      '└─ Deployment web',
      'MicroServiceDeploy shops/one',
      '├─ ConfigMap one',
      '├─ Deployment one (spec.replicas is set at creation only)',
      '├─ Service one',
      '├─ HorizontalPodAutoscaler one',
      '├─ ServiceAccount shop (shared by "shop")',
      '└─ Service shop (shared by "shop")',
      '',
    ].join('\n'),
  );
});

test('the tree goes on below children that are objects of the kinds, and ends where a kind owns itself', () => {
  const nest = defineKind({
    ...{
      group: 'example.com',
      version: 'v1',
      kind: 'Nest',
      plural: 'nests',
      scope: 'Namespaced',
      description: 'A nest.',
    },
    spec: z.object({}),
    owns: [Foo.type, { apiVersion: 'example.com/v1', kind: 'Nest', plural: 'nests', scope: 'Namespaced' }],
    children(scope, { metadata: { name } }) {
      const { apiVersion, kind } = Foo;
      new ApiObject(scope, 'foo', {
        apiVersion,
        kind,
        metadata: { name },
        spec: { deploymentName: 'inner', replicas: 1 },
      });
      new ApiObject(scope, 'nest', {
        apiVersion: 'example.com/v1',
        kind: 'Nest',
        metadata: { name: `${name}-in` },
        spec: {},
      });
    },
  });
  const object = 'apiVersion: example.com/v1\nkind: Nest\nmetadata: { name: a }\nspec: {}\n';
  expect(render(object, 'tree', [Foo, nest])).toBe(
    ['Nest default/a', '├─ Foo a', '│  └─ Deployment inner', '└─ Nest a-in', ''].join('\n'),
  );
});

test('an object of another version of its kind is converted first', () => {
  const old = `apiVersion: ${Shop.group}/v1beta1\nkind: Shop\nmetadata: { name: a }\nspec: { image: web, replicas: 3, memory: 1Gi }\n`;
  expect(render(old, 'tree', [Shop])).toMatch(/^Shop default\/a\n/);
});

test('an object without children says so', () => {
  const nothing = 'apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: { name: a }\n';
  expect(render(nothing)).toBe('# CronTab default/a adds no child.\n');
  expect(render(nothing, 'tree')).toBe('CronTab default/a\n');
});

test('every object that is not valid is named, with every field that is wrong', () => {
  const wrong = foo.replace('replicas: 2', 'replicas: -1, color: red').replace('deploymentName: web, ', '');
  const other = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\n';
  const message = (() => {
    try {
      return render([foo, wrong, other].join('---\n'));
    } catch (error) {
      return (error as Error).message;
    }
  })();
  expect(message).toMatch(/mine\.yaml, document 2: Foo default\/a is invalid:/);
  for (const part of ['spec.deploymentName', 'spec.replicas', 'spec.color']) expect(message).toContain(part);
  expect(message).toContain(
    'mine.yaml, document 3: ConfigMap c is a ConfigMap of v1, which is none of the kinds: HelloApp of ',
  );
  expect(message).not.toContain('document 1');
});

test('a name that the kind does not take is refused', () => {
  const { names } = MicroServiceDeploy;
  expect(() => render(foo.replace('name: a', 'name: A_b'))).toThrow('metadata.name');
  expect(names ?? 'any').toBeDefined();
});

test('kubectl, which reads YAML 1.1, reads the same texts', () => {
  const odd = foo
    .replace('name: a', 'name: "on", namespace: "no"')
    .replace('deploymentName: web', 'deploymentName: "y"');
  expect(render(odd)).toMatch(/^  name: "y"$/m);
  expect(render(odd)).toMatch(/^  namespace: "no"$/m);
});

test.each([
  ['an object twice', `${foo}---${foo}`, /document 2: Foo default\/a is there already, from mine\.yaml, document 1\./],
  [
    'in a namespace that is the default one',
    `${foo}---${foo.replace('name: a', 'name: a, namespace: default')}`,
    /already/,
  ],
  [
    'two children of one name',
    `${foo}---${foo.replace('name: a', 'name: b')}`,
    /document 2, child of Foo default\/b: Deployment default\/web is there already, from mine\.yaml, document 1, child of Foo default\/a\./,
  ],
  [
    'a namespace that is none',
    foo.replace('name: a', 'name: a, namespace: "x\\nkind: Evil"'),
    /metadata\.namespace: "x/,
  ],
  [
    'a namespace that is a number',
    foo.replace('name: a', 'name: a, namespace: 5'),
    /metadata\.namespace: it must be a string/,
  ],
  ['an alias that leads nowhere', 'a: *b', /^mine\.yaml .*[Aa]lias/],
])('%s is refused', (_, yaml, message) => {
  expect(() => render(yaml)).toThrow(message);
});
