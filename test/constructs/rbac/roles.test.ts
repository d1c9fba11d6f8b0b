import { App, Chart } from 'cdk8s';
import type { AnyKind } from '../../../constructs/kind/kind';
import { AccessRoles, LeaderElectionRole, OperatorRole } from '../../../constructs/rbac';
import type { PolicyRule } from '../../../constructs/rbac';
import { Binder, Outside, OutsideWide, Plain, Rich, Watcher, Wide } from './kinds';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  readonly rules?: readonly PolicyRule[];
}

function synth(add: (chart: Chart) => void): readonly Manifest[] {
  const chart = new Chart(new App(), 'test');
  add(chart);
  return chart.toJson() as readonly Manifest[];
}

const serviceAccount = { name: 'kindred-operator', namespace: 'kindred-system' };
const labels = { 'app.kubernetes.io/part-of': 'kindred' };

describe('OperatorRole', () => {
  const common = { name: 'kindred-operator', serviceAccount, labels };
  const where = (manifests: readonly Manifest[]): string[] =>
    manifests.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? '-'}`);

  test('for the whole cluster', () => {
    const manifests = synth((chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain] }));
    expect(where(manifests)).toEqual(['ClusterRole -', 'ClusterRoleBinding -']);
    expect(manifests).toMatchSnapshot();
  });

  test('confined to namespaces: Roles, and nothing for the cluster', () => {
    const manifests = synth(
      (chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain], namespaces: ['team-b', 'team-a'] }),
    );
    expect(where(manifests)).toEqual(['Role team-a', 'RoleBinding team-a', 'Role team-b', 'RoleBinding team-b']);
  });

  test('confined with a cluster-scoped kind: the cluster-scoped half, and its events in default', () => {
    const manifests = synth(
      (chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain, Wide], namespaces: ['team-a'] }),
    );
    const roles = manifests.filter(({ kind }) => kind.endsWith('Role'));
    expect(where(roles)).toEqual(['ClusterRole -', 'Role default', 'Role team-a']);
    const [cluster, inDefault] = roles;
    expect(cluster?.rules?.flatMap(({ resources }) => resources)).toEqual([
      'priorityclasses',
      'wides',
      'wides/finalizers',
      'wides/status',
    ]);
    expect(inDefault?.rules).toEqual([
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ]);
  });

  test('confined to default with kinds of both scopes: events are granted once', () => {
    const manifests = synth(
      (chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain, Wide], namespaces: ['default'] }),
    );
    const role = manifests.find(({ kind }) => kind === 'Role');
    expect(role?.rules?.filter(({ resources }) => resources.includes('events'))).toHaveLength(1);
  });

  test('extra rules hold in their namespace only, beside the derived ones', () => {
    const secrets: PolicyRule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['ssh-key'] };
    const manifests = synth(
      (chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain], extraRules: { vault: [secrets] } }),
    );
    expect(manifests.find(({ metadata }) => metadata.namespace === 'vault')?.rules).toEqual([secrets]);
    expect(JSON.stringify(manifests.find(({ kind }) => kind === 'ClusterRole'))).not.toContain('secrets');
  });

  test('confined, a rule for the whole cluster is in a ClusterRole: of a kind, or under "*" of the operator', () => {
    const classes: PolicyRule = { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list'] };
    const roles = synth(
      (chart) =>
        new OperatorRole(chart, 'role', {
          ...{ ...common, kinds: [Binder], namespaces: ['team-a'] },
          extraRules: { '*': [classes], vault: [classes] },
        }),
    ).filter(({ kind }) => kind.endsWith('Role'));
    expect(where(roles)).toEqual(['ClusterRole -', 'Role team-a', 'Role vault']);
    expect(roles[0]?.rules).toEqual([{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list'] }, classes]);
    expect(roles[1]?.rules).toContainEqual({
      ...{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['bind'] },
      resourceNames: ['edit'],
    });
    expect(roles[2]?.rules).toEqual([classes]);
  });

  test('for the whole cluster, rules under "*" stand with the derived ones', () => {
    const classes: PolicyRule = { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list'] };
    const manifests = synth(
      (chart) => new OperatorRole(chart, 'role', { ...common, kinds: [Plain], extraRules: { '*': [classes] } }),
    );
    expect(where(manifests)).toEqual(['ClusterRole -', 'ClusterRoleBinding -']);
    expect(manifests[0]?.rules).toContainEqual(classes);
  });

  test('what effects store and read in the namespace of the operator is granted there, and once', () => {
    const core = (resources: string, ...verbs: PolicyRule['verbs']): PolicyRule => ({
      ...{ apiGroups: [''], resources: [resources], verbs },
    });
    const states = core('secrets', 'get', 'create', 'update', 'delete');
    const inOwn = (kinds: readonly AnyKind[], extra: readonly PolicyRule[] = []) =>
      synth((chart) => {
        const extraRules = extra.length === 0 ? {} : { extraRules: { 'kindred-system': extra } };
        new OperatorRole(chart, 'role', { ...common, kinds, ...extraRules });
      }).find(({ kind, metadata }) => kind === 'Role' && metadata.namespace === 'kindred-system')?.rules;
    expect(inOwn([OutsideWide])).toEqual([core('configmaps', 'get'), states]);
    expect(inOwn([OutsideWide], [states])).toEqual([core('configmaps', 'get'), states]);
    // Of namespaced objects only the key of their states.
    const key = { ...core('secrets', 'get'), resourceNames: ['kindred-state-key'] };
    expect(inOwn([Outside, Watcher, Plain])).toEqual([core('secrets', 'create'), key]);
    expect(inOwn([Watcher, Plain])).toBeUndefined();
  });

  test.each([
    [{ kinds: [] }, '`kinds` is empty'],
    [{ kinds: [Plain], namespaces: [] }, '`namespaces` is empty'],
    [
      { kinds: [Plain], extraRules: { a: [{ apiGroups: ['*'], resources: ['secrets'], verbs: ['get' as const] }] } },
      'extraRules.a[0]: it grants "*"',
    ],
    [
      { kinds: [Plain], extraRules: { a: [{ apiGroups: [''], resources: ['*/status'], verbs: ['get' as const] }] } },
      'extraRules.a[0]: it grants "*"',
    ],
    [
      { kinds: [Plain], extraRules: { a: [{ apiGroups: [''], resources: ['secrets'], verbs: ['*' as 'get'] }] } },
      'the verb * is none of',
    ],
    [
      { kinds: [Plain], extraRules: { a: [{ apiGroups: [''], resources: [], verbs: ['get' as const] }] } },
      'extraRules.a[0].resources: it is empty',
    ],
    [{ kinds: [Plain], extraRules: { 'No Name': [] } }, '"No Name" must be'],
    [{ kinds: [Plain], extraRules: { 'No Name': [] } }, 'or write "*" for the whole cluster'],
    [
      { kinds: [Plain], extraRules: { '*': [{ apiGroups: [''], resources: ['*'], verbs: ['get' as const] }] } },
      'extraRules["*"][0]: it grants "*"',
    ],
  ])('refuses %j', (props, message) => {
    expect(() => synth((chart) => new OperatorRole(chart, 'role', { ...common, ...props }))).toThrow(message);
  });
});

test('LeaderElectionRole: one Lease by name; create cannot be limited by name', () => {
  const manifests = synth(
    (chart) =>
      new LeaderElectionRole(chart, 'role', {
        name: 'kindred-operator-leader-election',
        namespace: 'kindred-system',
        leaseName: 'kindred-operator',
        serviceAccount,
        labels,
      }),
  );
  expect(manifests).toMatchSnapshot();
});

describe('AccessRoles', () => {
  test('a namespaced kind, with its scale subresource, is aggregated', () => {
    expect(synth((chart) => new AccessRoles(chart, 'access', { kind: Rich, labels }))).toMatchSnapshot();
  });

  test('a cluster-scoped kind is not, unless it is asked for', () => {
    const aggregated = (aggregate?: boolean): string[] =>
      synth(
        (chart) => new AccessRoles(chart, 'access', { kind: Wide, ...(aggregate === undefined ? {} : { aggregate }) }),
      )
        .flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}))
        .sort();
    expect(aggregated()).toEqual([]);
    expect(aggregated(true)).toEqual([
      'rbac.authorization.k8s.io/aggregate-to-admin',
      'rbac.authorization.k8s.io/aggregate-to-edit',
      'rbac.authorization.k8s.io/aggregate-to-view',
    ]);
  });

  test('nobody writes the status by these roles', () => {
    const rules = synth((chart) => new AccessRoles(chart, 'access', { kind: Rich })).flatMap((m) => m.rules ?? []);
    const onStatus = rules.filter(({ resources }) => resources.includes('riches/status'));
    expect(onStatus.flatMap(({ verbs }) => verbs)).toEqual(['get', 'get']);
  });
});
