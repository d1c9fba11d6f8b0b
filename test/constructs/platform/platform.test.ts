import { App } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { InvalidPropsError } from '../../../constructs/operator';
import { Platform, type PlatformProps } from '../../../constructs/platform';
import { OperatorRole, type PolicyRule } from '../../../constructs/rbac';
import { Plain, Rich, Sharer, Wide } from '../rbac/kinds';
import { cpuTimeMs } from '../../support/processes';

const image = 'registry.example.com/kindred-operator:1.0.0';
const props: PlatformProps = {
  operators: [
    { name: 'operator', image, kinds: [Plain, Rich] },
    { name: 'provisioner', image, kinds: [Wide], terminationGracePeriodSeconds: 3600 },
  ],
  guardedNamespaces: ['team-a', { name: 'team-b', create: true, quota: { 'requests.cpu': '16' } }],
};

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  readonly rules?: readonly PolicyRule[];
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: readonly { args: string[] }[] } } };
}

function platform(further: Partial<PlatformProps> = {}): Platform {
  return new Platform(new App(), 'kindred', { ...props, ...further });
}

function synth(further: Partial<PlatformProps> = {}): readonly Manifest[] {
  return platform(further).toJson() as readonly Manifest[];
}

const title = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.namespace ?? '-'} ${metadata.name}`;

function problemsOf(further: Partial<PlatformProps>): readonly string[] {
  try {
    platform(further);
  } catch (error) {
    if (error instanceof InvalidPropsError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

describe('Platform', () => {
  test('all that it holds, in the order in which it is applied', () => {
    expect(synth({ monitoring: {} }).map(title)).toMatchSnapshot();
  });

  test('one small platform, whole', () => {
    const one = { operators: [{ name: 'operator', image, kinds: [Plain] }], guardedNamespaces: [] };
    const manifests = synth(one).filter(({ kind }) => kind !== 'CustomResourceDefinition');
    expect(manifests).toMatchSnapshot();
  });

  test('twice the same bytes', () => {
    expect(JSON.stringify(synth({ monitoring: {} }))).toBe(JSON.stringify(synth({ monitoring: {} })));
    const chart = platform();
    expect(JSON.stringify(chart.toJson())).toBe(JSON.stringify(chart.toJson()));
  });

  test('no name comes from a path, and no cluster-scoped object has a namespace', () => {
    for (const { kind, metadata } of synth()) {
      expect(metadata.name).not.toMatch(/-c8[0-9a-f]{6}$/);
      if (/^(Cluster.*|Namespace|CustomResourceDefinition)$/.test(kind)) expect(metadata.namespace).toBeUndefined();
      else expect(metadata.namespace).toBeDefined();
      if (kind !== 'CustomResourceDefinition') {
        expect(metadata.labels).toHaveProperty(['app.kubernetes.io/managed-by'], 'kindred-platform');
      }
    }
  });

  test('namespace, CRDs, permissions, operators depend on each other in that order', () => {
    const chart = platform();
    const roles = chart.node.findAll().filter((construct) => construct instanceof OperatorRole);
    const crds = chart.customResourceDefinitions.map(({ node }) => node.path);
    expect([crds.length, roles.length, chart.operators.length]).toEqual([3, 2, 2]);
    for (const crd of chart.customResourceDefinitions) expect(needs(crd)).toEqual(['kindred/namespace']);
    for (const role of roles) expect(needs(role)).toEqual(expect.arrayContaining([...crds, 'kindred/namespace']));
    for (const operator of chart.operators) {
      expect(needs(operator)).toEqual(expect.arrayContaining([...roles.map(({ node }) => node.path), ...crds]));
    }
  });

  test('each operator runs its own kinds, under its own account, Lease and role', () => {
    const manifests = synth();
    const args = manifests
      .filter(({ kind }) => kind === 'Deployment')
      .map(({ spec }) => spec?.template?.spec.containers[0]?.args.slice(0, 3));
    expect(args).toEqual([
      ['--kinds=plains.test.kindred.dev,riches.test.kindred.dev', '--leader-elect', '--lease-name=kindred-operator'],
      ['--kinds=wides.test.kindred.dev', '--leader-elect', '--lease-name=kindred-provisioner'],
    ]);
    const role = (name: string): string =>
      JSON.stringify(manifests.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name)?.rules);
    expect(role('kindred-operator')).not.toContain('wides');
    expect(role('kindred-provisioner')).not.toContain('deployments');
  });

  test('the namespace enforces the restricted Pod Security Standard, or is not made', () => {
    expect(synth().find(({ kind }) => kind === 'Namespace')?.metadata).toMatchObject({
      name: 'kindred-system',
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
    });
    const without = synth({ createNamespace: false, guardedNamespaces: [] });
    expect(without.map(({ kind }) => kind)).not.toContain('Namespace');
  });

  test('confined to namespaces, roles and command line are confined alike', () => {
    const manifests = synth({ operators: [{ name: 'operator', image, kinds: [Plain] }], watchNamespaces: ['team-a'] });
    expect(manifests.map(title)).toContain('Role team-a kindred-operator');
    expect(manifests.map(title)).not.toContain('ClusterRole - kindred-operator');
    expect(JSON.stringify(manifests)).toContain('"--namespaces=team-a"');
  });

  test('guardrails of a namespace that the platform creates come after it', () => {
    const titles = synth().map(title);
    expect(titles.indexOf('Namespace - team-b')).toBeLessThan(
      titles.indexOf('ResourceQuota team-b default-resource-quota'),
    );
    expect(titles).not.toContain('Namespace - team-a');
    const confined = synth({ operators: [{ name: 'operator', image, kinds: [Plain] }], watchNamespaces: ['team-b'] });
    const order = confined.map(title);
    expect(order.indexOf('Namespace - team-b')).toBeLessThan(order.indexOf('Role team-b kindred-operator'));
    const own = synth({ guardedNamespaces: ['kindred-system'] }).map(title);
    expect(own.indexOf('Namespace - kindred-system')).toBeLessThan(
      own.indexOf('LimitRange kindred-system default-limit-range'),
    );
  });

  test('many kinds do not take long', () => {
    const many = Array.from({ length: 40 }, (_, i) => ({ ...Sharer, crdName: `sharers${i}.test.kindred.dev` }));
    const started = cpuTimeMs();
    synth({ operators: [{ name: 'operator', image, kinds: many }] });
    expect(cpuTimeMs() - started).toBeLessThan(3000);
  });
});

describe('what a Platform refuses', () => {
  test('everything at once, each with its path', () => {
    expect(
      problemsOf({
        namespace: 'No.Namespace',
        operators: [
          { name: 'a', image, kinds: [Plain, Rich] },
          { name: 'a', image: ' ', kinds: [Rich, Rich] },
          { name: 'B', image, kinds: [], leaseName: 'kindred-a', replicas: -1 },
          {
            name: 'c',
            image,
            kinds: [Wide],
            extraRules: { x: [{ apiGroups: [''], resources: ['*'], verbs: ['get'] }] },
          },
        ],
        guardedNamespaces: ['x', 'x', { name: 'y', containers: { max: { cpu: 'two' } } }, ''],
        watchNamespaces: [],
      }),
    ).toMatchSnapshot();
  });

  test('no operators', () => {
    expect(problemsOf({ operators: [] })).toEqual([
      'operators: it is empty: a platform needs an operator to run its kinds',
    ]);
  });

  test('creating its own namespace twice', () => {
    const guardedNamespaces = [{ name: 'kindred-system', create: true }];
    expect(problemsOf({ guardedNamespaces })).toHaveLength(1);
    expect(problemsOf({ guardedNamespaces, createNamespace: false })).toEqual([]);
  });

  test('nothing, when nothing is wrong', () => expect(problemsOf({})).toEqual([]));
});

/** The paths of everything that a construct depends on, itself or by an ancestor, directly or not. */
function needs(construct: IConstruct): readonly string[] {
  const found = new Set<IConstruct>();
  const visit = (from: IConstruct): void => {
    for (const scope of from.node.scopes) {
      for (const target of scope.node.dependencies) {
        for (const each of target.node.findAll()) {
          if (found.has(each)) continue;
          found.add(each);
          visit(each);
        }
      }
    }
  };
  visit(construct);
  return [...found].map(({ node }) => node.path);
}
