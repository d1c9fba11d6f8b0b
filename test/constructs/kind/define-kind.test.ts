import { z } from 'zod';
import { cel } from '../../../constructs/kind/schema/cel';
import { KindDefinitionError, type InvalidObjectError } from '../../../constructs/kube/errors';
import { withRule } from '../../../constructs/kind/fields';
import { defineKind, type KindProps } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { parseSpec, validateObject } from '../../../constructs/kind/validate';

const spec = z.object({
  image: z.string().min(1).max(100).describe('Image.'),
  size: z.int().min(0).default(1).describe('Pods.'),
  nested: z
    .object({
      list: z
        .array(z.object({ a: z.int().describe('A.') }))
        .optional()
        .describe('L.'),
    })
    .optional()
    .describe('N.'),
});
const status = z.object({ replicas: z.int().optional().describe('R.') });

const props: KindProps<typeof spec, typeof status> = {
  group: 'test.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  description: 'A widget.',
  spec,
  status,
  owns: [],
  children() {
    // None.
  },
};
const Widget = defineKind({ ...props, names: { format: 'dns-label', maxLength: 10 } });

function problemsOf(more: Partial<KindProps<typeof spec, typeof status>>): string[] {
  try {
    defineKind({ ...props, ...more });
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(KindDefinitionError);
    return (error as KindDefinitionError).problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('defineKind', () => {
  test('gives frozen data with what follows from the definition', () => {
    expect(Widget).toMatchObject({
      singular: 'widget',
      crdName: 'widgets.test.example.com',
      apiVersion: 'test.example.com/v1',
      categories: ['kindred'],
      schema: { spec: { required: ['image'] } },
    });
    expect(Object.isFrozen(Widget)).toBe(true);
    expect(Object.isFrozen(Widget.schema.spec.properties)).toBe(true);
  });

  test.each<[string, Partial<KindProps<typeof spec, typeof status>>, string]>([
    [
      'a column',
      { columns: [{ name: 'X', type: 'string', jsonPath: '.spec.imaeg' }] },
      'columns[0].jsonPath: .spec.imaeg of the column X',
    ],
    [
      'a column without a dot',
      { columns: [{ name: 'X', type: 'string', jsonPath: 'spec.image' }] },
      'columns[0].jsonPath',
    ],
    [
      'a scale path',
      { scale: { specReplicasPath: '.count', statusReplicasPath: '.status.replicas' } },
      'scale.specReplicasPath: .count',
    ],
    [
      'a scale path of another type',
      { scale: { specReplicasPath: '.spec.image', statusReplicasPath: '.status.replicas' } },
      'scale.specReplicasPath',
    ],
    [
      'a scale path with a slip of the pen',
      { scale: { specReplicasPath: '.spec.sizee', statusReplicasPath: '.status.replicas' } },
      'scale.specReplicasPath: .spec.sizee must lead to a field of type integer below .spec.',
    ],
    [
      'a scale path into the status',
      { scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.replicaz' } },
      'scale.statusReplicasPath: .status.replicaz must lead to a field of type integer below .status.',
    ],
    [
      'a scale path into the other half',
      { scale: { specReplicasPath: '.status.replicas', statusReplicasPath: '.spec.size' } },
      'scale.specReplicasPath: .status.replicas must lead',
    ],
    [
      'a selector in the metadata',
      {
        scale: {
          specReplicasPath: '.spec.size',
          statusReplicasPath: '.status.replicas',
          labelSelectorPath: '.metadata.name',
        },
      },
      'scale.labelSelectorPath: .metadata.name must lead to a field of type string below .spec. or .status.',
    ],
    [
      'a rule on metadata that the server hides',
      { rules: [cel('self.metadata.generation > 1', 'm')] },
      'rules: self.metadata.generation > 1 reads metadata.generation, and of metadata the server shows rules only name and generateName',
    ],
    [
      'a message on metadata that the server hides',
      { rules: [cel('self.spec.size > 1', 'm', { messageExpression: 'self.metadata.uid + "x"' })] },
      'rules: self.metadata.uid + "x" reads metadata.uid',
    ],
    [
      'a fieldPath into metadata that the server hides',
      { rules: [cel('self.spec.size > 1', 'm', { fieldPath: '.metadata.labels' })] },
      'rules: the fieldPath ".metadata.labels"',
    ],
    [
      'a rule on the whole that reads without bound',
      { rules: [cel('self.spec == oldSelf.spec', 'm')], spec: z.object({ image: z.string().describe('I.') }) as never },
      'spec.image: give the string a maximum',
    ],
    ['an empty rule', { rules: [cel('', 'm')] }, 'rules: a CEL rule is empty'],
  ])('refuses %s that leads nowhere or too far', (_, more, expected) => {
    expect(problemsOf(more).join('\n')).toContain(expected);
  });

  test('takes paths into metadata and the common status', () => {
    expect(
      problemsOf({
        columns: [
          { name: 'A', type: 'string', jsonPath: '.metadata.name' },
          { name: 'B', type: 'integer', jsonPath: '.status.observedGeneration' },
          { name: 'C', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
          { name: 'D', type: 'integer', jsonPath: '.metadata.generation' },
          { name: 'E', type: 'string', jsonPath: '.metadata.uid' },
          { name: 'F', type: 'string', jsonPath: '.metadata.resourceVersion' },
          { name: 'G', type: 'date', jsonPath: '.metadata.deletionTimestamp' },
          { name: 'H', type: 'string', jsonPath: '.metadata.labels.app' },
        ],
        scale: {
          specReplicasPath: '.spec.size',
          statusReplicasPath: '.status.replicas',
          labelSelectorPath: '.spec.image',
        },
        rules: [
          cel('self.metadata.name != self.spec.image', 'm'),
          cel('self.spec.image != "self.metadata.generation"', 'm'),
        ],
      }),
    ).toEqual([]);
  });

  test('refuses what an object in a namespace cannot own, wherever it says so', () => {
    const Namespace = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' } as const;
    const shared = [{ name: 'group', owns: [Namespace], key: () => 'key', children: () => undefined }];
    for (const [path, more] of [
      ['owns', { owns: [Namespace] }],
      ['formerlyOwned', { formerlyOwned: [Namespace] }],
      ['shared[0].owns', { shared }],
    ] as const) {
      expect(problemsOf(more)).toEqual([expect.stringContaining(`${path}: v1/Namespace is cluster-scoped`)]);
      expect(problemsOf({ ...more, scope: 'Cluster' })).toEqual([]);
    }
  });

  test('refuses children in namespaces of an object that is in none, wherever it says so', () => {
    const Secret = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', scope: 'Namespaced' } as const;
    const shared = [{ name: 'group', owns: [Secret], key: () => 'key', children: () => undefined }];
    for (const [path, more] of [
      ['owns', { owns: [Secret] }],
      ['shared[0].owns', { shared }],
    ] as const) {
      expect(problemsOf({ ...more, scope: 'Cluster' })).toEqual([
        `${path}: v1/Secret lives in a namespace, and a cluster-scoped object has none to render it in; own cluster-scoped types only, or make the kind Namespaced`,
      ]);
      expect(problemsOf(more)).toEqual([]);
    }
    // These are only deleted, wherever they stand.
    expect(problemsOf({ formerlyOwned: [Secret], scope: 'Cluster' })).toEqual([]);
  });

  test('refuses rules that grant too much or nothing', () => {
    const rbac = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'] };
    const bind = { ...rbac, verbs: ['bind'], resourceNames: ['edit'] } as const;
    expect(problemsOf({ extraRules: [bind, { ...bind, resources: ['roles'], scope: 'Cluster' }] })).toEqual([]);
    const { resourceNames: _, ...all } = bind;
    for (const [rule, problem] of [
      [
        all,
        'extraRules[0].resourceNames: the verb bind without names grants all permissions there are: name the roles',
      ],
      [{ ...bind, resourceNames: [] }, 'extraRules[0].resourceNames: it is empty: the rule grants nothing'],
      [{ ...bind, resources: ['pods'] }, 'extraRules[0]: the verb bind is for clusterroles and roles in rbac.auth'],
      [
        { ...bind, verbs: ['bind', 'get'] },
        'extraRules[0].verbs: bind has other verbs beside it; give it a rule of its own',
      ],
      [{ ...bind, verbs: ['escalate'] as never }, 'extraRules[0]: the verb escalate is none of get, list, watch'],
      [{ ...bind, resources: ['*'] }, 'extraRules[0]: it grants "*"'],
      [{ ...bind, verbs: [] }, 'extraRules[0].verbs: it is empty'],
    ] as const) {
      expect(problemsOf({ extraRules: [rule] })[0]).toContain(problem);
    }
    expect(problemsOf({ extraRules: [{ ...bind, scope: 'Namespaced' }], owns: [], scope: 'Cluster' })).toEqual([
      'extraRules[0].scope: the operator of a cluster-scoped kind works in no namespace of its objects; leave it out',
    ]);
  });

  test('refuses a status field that must stand before there is anything to observe', () => {
    const required = z.object({ replicas: z.int().describe('R.') });
    expect(problemsOf({ status: required as never })).toEqual([expect.stringContaining('status.replicas: ')]);
  });

  test('a kind is as long as leaves room for the kind of its lists', () => {
    const longest = `W${'x'.repeat(58)}`;
    expect(problemsOf({ kind: longest })).toEqual([]);
    expect(problemsOf({ kind: `${longest}x` })).toEqual([
      `kind: "${longest}x" must be CamelCase, letters and digits, at most 59 characters: with "List" behind it, it may have 63`,
    ]);
  });

  test.each([
    ['widgets.example.com', true],
    ['example.com/widgets', true],
    ['widgets', false],
    ['Example.com/widgets', false],
  ])('finalizer %s: %p', (name, kept) => {
    expect(problemsOf({ finalizer: { name, propagation: 'Foreground' } }).length === 0).toBe(kept);
  });

  test('names every problem at once', () => {
    expect(problemsOf({ kind: 'widget', columns: [{ name: 'X', type: 'string', jsonPath: '.x' }] })).toHaveLength(2);
  });
});

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return (error as InvalidObjectError).message;
  }
  throw new Error('not refused');
}

describe('an object', () => {
  const object = (written: unknown, name = 'web') => ({
    apiVersion: Widget.apiVersion,
    kind: Widget.kind,
    metadata: { name, namespace: 'shop' },
    spec: written,
  });

  test('gets its defaults', () => {
    expect(validateObject(Widget, object({ image: 'x' })).spec).toEqual({ image: 'x', size: 1 });
    expect(parseSpec(Widget, object({ image: 'x' }))).toEqual({ image: 'x', size: 1 });
  });

  test('is refused with everything that is wrong', () => {
    const written = { size: -1, colour: 'red', nested: { list: [{ a: 1, b: 2 }] } };
    expect(refusal(() => validateObject(Widget, object(written, 'web.shop')))).toBe(
      [
        'Widget shop/web.shop is invalid:',
        '  metadata.name: "web.shop" must be at most 10 characters: lower-case letters, digits and "-", starting and ending with a letter or digit',
        '  spec.colour: is no field of the schema; it has image, size, nested',
        '  spec.nested.list[0].b: is no field of the schema; it has a',
        '  spec.image: is required',
        '  spec.size: Too small: expected number to be >=0',
      ].join('\n'),
    );
  });

  test('of another kind is refused', () => {
    expect(refusal(() => validateObject(Widget, { ...object({ image: 'x' }), kind: 'Gadget' }))).toContain(
      'it is test.example.com/v1 Gadget; test.example.com/v1 Widget is expected',
    );
  });

  test('without a name is refused, and no less clearly', () => {
    const { apiVersion, kind } = Widget;
    for (const more of [{ metadata: { generateName: 'w-', namespace: 'shop' } }, { metadata: {} }, {}]) {
      const written = { apiVersion, kind, ...more, spec: { image: 'x' } } as unknown as KubeObject;
      expect(refusal(() => validateObject(Widget, written))).toMatch(
        /^Widget (shop\/)?\(unnamed\) is invalid:\n {2}metadata.name: is required$/,
      );
    }
  });

  test('without a spec counts as one with an empty spec', () => {
    expect(refusal(() => validateObject(Widget, object(undefined)))).toContain('spec.image: is required');
    const { group, version, kind, plural, scope, description } = props;
    const Optional = defineKind({
      ...{ group, version, kind, plural, scope, description, owns: [], children: () => undefined },
      spec: z.object({ a: z.int().default(3).describe('A.') }),
    });
    expect(parseSpec(Optional, object(undefined))).toEqual({ a: 3 });
  });

  test('without a spec is refused where the server could not check a rule then, and read where it stands already', () => {
    const { group, version, kind, plural, scope, description } = props;
    const Ruled = defineKind({
      ...{ group, version, kind, plural, scope, description, owns: [], children: () => undefined },
      spec: withRule(z.object({ a: z.int().optional().describe('A.') }), cel('has(self.a)', 'give a')),
    });
    for (const absent of [undefined, null]) {
      expect(refusal(() => validateObject(Ruled, object(absent)))).toContain(
        'spec: is required: the server checks the rule "give a" only where there is a spec',
      );
    }
    expect(validateObject(Ruled, object({})).spec).toEqual({});
    expect(parseSpec(Ruled, object(undefined))).toEqual({});
  });

  test('from a server may have fields that the schema does not know', () => {
    expect(parseSpec(Widget, object({ image: 'x', colour: 'red' }))).toEqual({ image: 'x', size: 1 });
    expect(refusal(() => parseSpec(Widget, object({ image: 3 })))).toContain(
      'spec.image: Invalid input: expected string',
    );
  });

  test('whose spec is null lacks what the spec requires: the server drops such a null', () => {
    expect(refusal(() => validateObject(Widget, object(null)))).toContain('spec.image: is required');
  });
});
