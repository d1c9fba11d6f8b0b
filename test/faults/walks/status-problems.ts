import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { CommonStatus, ObservedChildren } from '../../../constructs/kind/kind';
import { withDefaults } from '../../../constructs/kind/render';
import { owned, typeKey, type ResourceType, type WorkloadObject } from '../../../constructs/kube/resource-type';
import { condition, is } from '../../e2e/operator/support/conditions';
import type { OwnerFinding } from './end-state';
import { firstPath } from './first-path';

/** What an owner's status says that is not so, or does not say. */
export function statusProblems(finding: OwnerFinding): readonly string[] {
  const { owner, obstacles } = finding;
  const { kind, metadata } = owner;
  const status = (owner['status'] ?? {}) as { readonly observedGeneration?: number };
  const problems = [
    ...(status.observedGeneration === metadata.generation ? [] : ['observedGeneration is behind']),
    ...(obstacles.size > 0 ? unlessStalled(finding) : unlessAsChildren(finding)),
    ...observedProblems(finding),
  ];
  const ready = JSON.stringify(condition(owner, 'Ready'));
  return problems.map((problem) => `${kind} "${metadata.name}": ${problem}; Ready is ${ready}`);
}

function unlessStalled({ owner, obstacles }: OwnerFinding): readonly string[] {
  const { reason = '' } = condition(owner, 'Ready') ?? {};
  const says = is(owner, 'Ready', 'False') && abnormal(owner) === 'Stalled=True' && obstacles.has(reason);
  return says ? [] : [`it must be Stalled for ${[...obstacles].join(' or ')}`];
}

function unlessAsChildren({ owner, live }: OwnerFinding): readonly string[] {
  const going = live.filter((child) => child.kind === owned.Deployment.kind && !isCurrent(child));
  if (going.length === 0)
    return is(owner, 'Ready', 'True') && abnormal(owner) === '' ? [] : ['all of its children are current'];
  const says = is(owner, 'Ready', 'False') && abnormal(owner) === 'Reconciling=True';
  const title = `Deployment "${going[0]?.metadata.name ?? ''}"`;
  if (!says) return [`${title} is not current`];
  // Its controller has not come to it yet, as after a restart of the API server: nothing has ended that goes on by itself.
  return going.every(isRefusedPods) ? [] : [`${title} is still on its way`];
}

/** The server refuses its pods; then it stays as it is. */
function isRefusedPods({ status = {} }: WorkloadObject): boolean {
  return status.conditions?.some(({ type, status }) => type === 'ReplicaFailure' && status === 'True') === true;
}

/** The conditions that stand only while they are true. */
function abnormal({ status }: KubeObject): string {
  const { conditions = [] } = (status ?? {}) as CommonStatus;
  const others = conditions.filter(({ type }) => type !== 'Ready');
  return others.map((other) => `${other.type}=${other.status}`).join(' ');
}

/** As `kubectl rollout status` sees it. */
function isCurrent(deployment: WorkloadObject): boolean {
  const { metadata, spec, status = {} } = deployment;
  const { replicas = 1 } = spec ?? {};
  const counts = [status.replicas, status.updatedReplicas, status.readyReplicas, status.availableReplicas];
  return status.observedGeneration === metadata.generation && counts.every((count) => (count ?? 0) === replicas);
}

/** The kind's own fields: what its `observe` makes of the children that stand. */
function observedProblems({ kind, owner, live }: OwnerFinding): readonly string[] {
  const observed = kind.observe?.({ self: withDefaults(kind, owner), children: observedChildren(live) }) ?? {};
  const status = (owner['status'] ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(observed).flatMap(([field, value]) => {
    const path = firstPath(value, status[field], `.status.${field}`);
    return path === undefined ? [] : [path];
  });
}

function observedChildren(live: readonly KubeObject[]): ObservedChildren {
  const all = <C extends KubeObject>(type: ResourceType<C>): readonly C[] =>
    live.filter((child): child is C => typeKey(child) === typeKey(type));
  return { all, one: (type) => all(type)[0] };
}
