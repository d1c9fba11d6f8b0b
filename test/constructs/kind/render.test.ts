import { ApiObject, Lazy } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { z } from 'zod';
import { RenderError } from '../../../constructs/kube/errors';
import { defineKind, type AnyKind, type KindProps } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { renderChildren, renderShared, sharedKeys, withDefaults } from '../../../constructs/kind/render';

const spec = z.object({ image: z.string().describe('Image.'), size: z.int().default(1).describe('Size.') });
type Props = Pick<KindProps<typeof spec, z.ZodObject>, 'children' | 'owns' | 'scope' | 'seeds' | 'shared'>;

function kindOf(children: Props['children'], further: Partial<Props> = {}): AnyKind {
  return defineKind({
    group: 'test.example.com',
    version: 'v1',
    kind: 'Thing',
    plural: 'things',
    scope: 'Namespaced',
    description: 'A thing.',
    spec,
    owns: [owned.ConfigMap, owned.Deployment],
    children,
    ...further,
  });
}

const self = {
  apiVersion: 'test.example.com/v1',
  kind: 'Thing',
  metadata: { name: 'x', namespace: 'team' },
  spec: { image: 'i' },
};

function configMap(scope: Construct, id: string, metadata: object): void {
  new kplus.k8s.KubeConfigMap(scope, id, { metadata });
}

/** What rendering throws; it must be a RenderError that says whose children they are. */
function problem(children: Props['children'], further: Partial<Props> = {}): string {
  try {
    renderChildren(kindOf(children, further), self);
  } catch (error) {
    if (error instanceof RenderError && error.object === 'Thing team/x') return error.message;
    throw error;
  }
  throw new Error('it renders');
}

describe('renderChildren', () => {
  it('gives children the namespace of their owner and their type', () => {
    const [child] = renderChildren(
      kindOf((scope) => configMap(scope, 'a', { name: 'n' })),
      self,
    );
    expect(child).toEqual({
      type: owned.ConfigMap,
      manifest: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n', namespace: 'team' } },
      seeds: [],
    });
  });

  it("applies the schema's defaults before the kind sees the spec, and leaves the object alone", () => {
    const kind = kindOf((scope, { spec: { size } }) => configMap(scope, 'a', { name: `n${String(size)}` }));
    expect(renderChildren(kind, Object.freeze(self))[0]?.manifest.metadata.name).toBe('n1');
    expect(self.spec).toEqual({ image: 'i' });
  });

  it('keeps the order of the constructs', () => {
    const kind = kindOf((scope) => ['c', 'a', 'b'].forEach((id) => configMap(scope, id, { name: id })));
    expect(renderChildren(kind, self).map(({ manifest }) => manifest.metadata.name)).toEqual(['c', 'a', 'b']);
  });

  it('finds what stands within other constructs', () => {
    const kind = kindOf((scope, { metadata: { name } }) => {
      configMap(new Construct(scope, 'group'), 'inner', { name: 'inner' });
      new kplus.Deployment(scope, 'deployment', { metadata: { name }, containers: [{ image: 'i' }] });
    });
    const names = renderChildren(kind, self).map(({ manifest }) => `${manifest.kind} ${manifest.metadata.name}`);
    expect(names).toEqual(['ConfigMap inner', 'Deployment x']);
  });

  it('renders a child in another version of its group only if the kind owns it', () => {
    const child = (scope: Construct): ApiObject =>
      new ApiObject(scope, 'a', { apiVersion: 'apps/v1beta1', kind: 'Deployment', metadata: { name: 'd' } });
    expect(problem(child)).toMatch('it renders apps/v1beta1/Deployment "d", which its kind does not own');
  });

  it.each<[string, Props['children'], string]>([
    [
      'an unnamed child',
      (scope) => new kplus.k8s.KubeConfigMap(scope, 'settings'),
      'Thing team/x: its children cannot be rendered: the ConfigMap at children/settings needs a metadata.name',
    ],
    [
      'an unnamed child within another construct',
      (scope) => new kplus.Deployment(scope, 'deployment', { containers: [{ image: 'i' }] }),
      'Thing team/x: its children cannot be rendered: the Deployment at children/deployment/Resource needs a metadata.name',
    ],
    [
      'a child outside owns',
      (scope) => new kplus.k8s.KubeSecret(scope, 's', { metadata: { name: 's' } }),
      'Thing team/x: it renders v1/Secret "s", which its kind does not own; add the type to `owns`',
    ],
    [
      'two children of one type and name',
      (scope) => ['a', 'b'].forEach((id) => configMap(scope, id, { name: 'n' })),
      'Thing team/x: it renders ConfigMap "n" twice',
    ],
    [
      "a child outside its owner's namespace",
      (scope) => configMap(scope, 'a', { name: 'n', namespace: 'other' }),
      'Thing team/x: ConfigMap "n" stands in namespace "other", not in its owner\'s',
    ],
    [
      'a name that is none',
      (scope) => configMap(scope, 'a', { name: 'Not_A_Name' }),
      'Thing team/x: a ConfigMap\'s name is not valid: "Not_A_Name" must be at most 253 characters: lower-case letters, digits, ' +
        '"-" and ".", each part starting and ending with a letter or digit',
    ],
    [
      'what the kind throws',
      () => {
        throw new TypeError('boom');
      },
      expect.stringMatching(/^Thing team\/x: Thing\.children: TypeError: boom \(render\.test\.ts:\d+:\d+\)$/) as string,
    ],
    [
      'what a construct throws when it is written out',
      (scope) => {
        const late = Lazy.any({
          produce: () => {
            throw new Error('too late');
          },
        }) as string;
        new ApiObject(scope, 'a', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n' }, data: { late } });
      },
      "Thing team/x: its children cannot be rendered: Failed serializing construct at path 'children/a' with name 'n': Error: too late",
    ],
  ])('refuses %s', (_, children, message) => {
    expect(problem(children)).toEqual(message);
  });

  it('keeps what was thrown as the cause, whatever it is', () => {
    const cause = { not: 'an error' };
    const kind = kindOf(() => {
      // oxlint-disable-next-line typescript/only-throw-error
      throw cause;
    });
    expect(() => renderChildren(kind, self)).toThrow(expect.objectContaining({ cause }) as Error);
  });

  it('admits two children of one name and different types', () => {
    const kind = kindOf((scope) => {
      configMap(scope, 'a', { name: 'n' });
      new kplus.Deployment(scope, 'd', { metadata: { name: 'n' }, containers: [{ image: 'i' }] });
    });
    expect(renderChildren(kind, self)).toHaveLength(2);
  });

  it('refuses a spec that does not fit, by field', () => {
    const kind = kindOf(() => undefined);
    const object = { ...self, spec: { size: 1.5 } };
    expect(() => renderChildren(kind, object)).toThrow(
      expect.objectContaining({
        name: 'InvalidObjectError',
        problems: [
          { path: 'spec.image', message: 'is required' },
          { path: 'spec.size', message: expect.stringContaining('expected int') as string },
        ],
      }) as Error,
    );
    expect(() => renderChildren(kind, { ...self, spec: undefined })).toThrow('spec.image: is required');
  });

  it('renders a cluster-scoped owner without a namespace', () => {
    const type = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' as const };
    const kind = kindOf((scope) => new kplus.k8s.KubeNamespace(scope, 'n', { metadata: { name: 'n' } }), {
      scope: 'Cluster',
      owns: [type],
    });
    const [child] = renderChildren(kind, { ...self, metadata: { name: 'x' } });
    expect(child?.manifest.metadata).toEqual({ name: 'n' });
  });
});

describe('seeds', () => {
  const seeds = [{ of: owned.Deployment, path: ['spec', 'replicas'], writer: owned.ConfigMap }];
  const deployment = (scope: Construct): Construct =>
    new kplus.Deployment(scope, 'd', { metadata: { name: 'd' }, containers: [{ image: 'i' }] });

  it('are active while their writer is rendered, and keep every value unless the kind says otherwise', () => {
    const both = kindOf(
      (scope) => {
        configMap(scope, 'w', { name: 'w' });
        deployment(scope);
      },
      { seeds },
    );
    const children = renderChildren(both, self);
    expect(children.map((child) => child.seeds.map(({ path }) => path))).toEqual([[], [['spec', 'replicas']]]);
    expect(children[1]?.seeds[0]?.keep(undefined)).toBe(true);
    expect(renderChildren(kindOf(deployment, { seeds }), self)[0]?.seeds).toEqual([]);
  });
});

describe('renderShared', () => {
  const group = {
    name: 'net',
    owns: [owned.ConfigMap],
    key: () => 'k',
    children: (scope: Construct, key: string) => configMap(scope, 'a', { name: key }),
  };
  const kind = kindOf(() => undefined, { shared: [group] });

  it('renders from the key alone', () => {
    expect(sharedKeys(kind, withDefaults(kind, self))).toEqual([{ group, key: 'k' }]);
    expect(renderShared(kind, group, 'k', 'team').map(({ manifest }) => manifest.metadata)).toEqual([
      { name: 'k', namespace: 'team' },
    ]);
  });

  it('names the group and the key in what it refuses', () => {
    expect(() => renderShared(kind, group, 'No', 'team')).toThrow(
      'Thing team/net "No": a ConfigMap\'s name is not valid',
    );
    const wrong = {
      ...group,
      children: (scope: Construct) => new kplus.k8s.KubeSecret(scope, 's', { metadata: { name: 's' } }),
    };
    expect(() => renderShared(kind, wrong, 'k', 'team')).toThrow('it renders v1/Secret "s"');
  });

  it('refuses what depends on more than the key', () => {
    const dated = {
      ...group,
      children: (scope: Construct) =>
        configMap(scope, 'a', { name: 'a', labels: { year: String(new Date().getFullYear()) } }),
    };
    expect(() => renderShared(kind, dated, 'k', 'team')).toThrow(
      'Thing net "k": Thing.shared.net.children is not pure: two renderings of the same key differ at ConfigMap "a", metadata.labels.year. Render from the key alone',
    );
  });
});
