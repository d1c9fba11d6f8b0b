import { own } from '../../../constructs/kind/child-policy';
import { owned } from '../../../constructs/kube/resource-type';
import { operatorRules } from '../../../constructs/rbac';
import type { PolicyRule } from '../../../constructs/rbac';
import { Binder, Keeper, Outside, OutsideWide, Plain, Rich, Sharer, Watcher, Wide } from './kinds';

const group = 'test.kindred.dev';
const rule = (apiGroup: string, resources: string, verbs: string): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: resources.split(' '),
  verbs: verbs.split(' ') as PolicyRule['verbs'],
});

const living = 'get list watch create patch delete';
const events = rule('events.k8s.io', 'events', 'create patch');

describe('operatorRules', () => {
  test('a kind without a finalizer: its objects are only read', () => {
    expect(operatorRules([Plain])).toEqual([
      rule('apps', 'deployments', living),
      events,
      rule(group, 'plains', 'list watch'),
      rule(group, 'plains/finalizers', 'update'),
      rule(group, 'plains/status', 'patch'),
    ]);
  });

  test('a kind that keeps completed children deleted records them on its objects', () => {
    const kind = { ...Plain, owns: [own(owned.Job, { whenGone: 'keep-gone' })] };
    expect(operatorRules([kind])).toContainEqual(rule(group, 'plains', 'list watch patch'));
    expect(operatorRules([{ ...Plain, owns: [own(owned.Job, { ready: 'ignore' })] }])).toContainEqual(
      rule(group, 'plains', 'list watch'),
    );
  });

  test('a kind with a finalizer, shared children, seeds and a past', () => {
    expect(operatorRules([Rich])).toEqual([
      rule('', 'configmaps serviceaccounts services', living),
      rule('', 'secrets', 'list watch delete'),
      rule('apps', 'deployments', living),
      rule('apps', 'statefulsets', 'list watch delete'),
      rule('autoscaling', 'horizontalpodautoscalers', living),
      events,
      rule(group, 'riches', 'list watch patch'),
      rule(group, 'riches/finalizers', 'update'),
      rule(group, 'riches/status', 'patch'),
    ]);
  });

  test('a kind that only shares blocks no deletion, so it needs no finalizers subresource', () => {
    expect(operatorRules([Sharer])).toEqual([
      rule('', 'services', living),
      events,
      rule(group, 'sharers', 'list watch'),
      rule(group, 'sharers/status', 'patch'),
    ]);
  });

  test('what one kind owned and another still owns gets the verbs of both', () => {
    const rules = operatorRules([Rich, Keeper]);
    expect(rules).toContainEqual(rule('', 'configmaps secrets serviceaccounts services', living));
    expect(rules.flatMap(({ resources }) => resources).filter((name) => name === 'secrets')).toHaveLength(1);
  });

  test('resources of one group with the same verbs share a rule', () => {
    expect(operatorRules([Plain, Sharer])).toEqual([
      rule('', 'services', living),
      rule('apps', 'deployments', living),
      events,
      rule(group, 'plains sharers', 'list watch'),
      rule(group, 'plains/finalizers', 'update'),
      rule(group, 'plains/status sharers/status', 'patch'),
    ]);
  });

  test('a namespaced kind with effects: their state, and what they read, in the namespaces of its objects', () => {
    expect(operatorRules([Outside])).toEqual([
      rule('', 'configmaps', 'get create update delete'),
      rule('', 'secrets', 'get'),
      events,
      rule(group, 'outsides', 'list watch'),
      rule(group, 'outsides/status', 'patch'),
    ]);
    expect(operatorRules([Watcher]).flatMap(({ resources }) => resources)).not.toContain('configmaps');
  });

  test('a cluster-scoped kind with effects: what it reads of its own scope; of namespaces only the role knows', () => {
    expect(operatorRules([OutsideWide])).toEqual([
      events,
      rule('scheduling.k8s.io', 'priorityclasses', 'get'),
      rule(group, 'outsidewides', 'list watch'),
      rule(group, 'outsidewides/status', 'patch'),
    ]);
  });

  test('by scope: a Role can grant only what is namespaced, and the two halves are the whole', () => {
    expect(operatorRules([Wide], { scope: 'Cluster' })).toEqual([
      rule('scheduling.k8s.io', 'priorityclasses', living),
      rule(group, 'wides', 'list watch patch'),
      rule(group, 'wides/finalizers', 'update'),
      rule(group, 'wides/status', 'patch'),
    ]);
    // Its events stand in `default`, not beside what it owned.
    expect(operatorRules([Wide], { scope: 'Namespaced' })).toEqual([rule('', 'secrets', 'list watch delete')]);
    expect(operatorRules([Plain], { scope: 'Namespaced' })).toEqual(operatorRules([Plain]));
    expect(operatorRules([Plain], { scope: 'Cluster' })).toEqual([]);
  });

  test("a kind's own rules stay what they are, behind the derived ones, each in its scope", () => {
    const bind = { ...rule('rbac.authorization.k8s.io', 'clusterroles', 'bind'), resourceNames: ['edit'] };
    const nodes = rule('', 'nodes', 'get list');
    const derived = [
      events,
      rule('rbac.authorization.k8s.io', 'rolebindings', living),
      rule(group, 'binders', 'list watch'),
      rule(group, 'binders/finalizers', 'update'),
      rule(group, 'binders/status', 'patch'),
    ];
    expect(operatorRules([Binder])).toEqual([...derived, nodes, bind]);
    expect(operatorRules([Binder], { scope: 'Namespaced' })).toEqual([...derived, bind]);
    expect(operatorRules([Binder], { scope: 'Cluster' })).toEqual([nodes]);
    expect(operatorRules([Binder, Binder])).toEqual(operatorRules([Binder]));
  });

  test('the order of the kinds does not show', () => {
    const all = [Plain, Rich, Sharer, Wide, Binder];
    expect(JSON.stringify(operatorRules([...all].reverse()))).toBe(JSON.stringify(operatorRules(all)));
  });

  test('nothing is granted by "*", and nothing on pods or RBAC', () => {
    const rules = operatorRules([Plain, Rich, Sharer, Wide]);
    const words = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs]);
    expect(words).not.toContain('*');
    expect(words).not.toContain('rbac.authorization.k8s.io');
    expect(words).not.toContain('pods');
  });

  test('no kinds, no rules', () => expect(operatorRules([])).toEqual([]));
});
