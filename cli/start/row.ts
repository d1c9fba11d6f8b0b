import type { Condition, KubeObject } from '../../constructs/kube/kube-object';

/** One line of the table. */
export interface Row {
  readonly kind: string;
  /** `<namespace>/<name>`, or the name alone. */
  readonly object: string;
  /** `True`, `False`, `Unknown`, or `-` when nobody has said anything yet. */
  readonly ready: string;
  readonly reason: string;
  readonly message: string;
  /** `Deployment 1/1, Service x2`. */
  readonly children: string;
  /** Whether it is Ready as it is now, and not as it was before its last change. */
  readonly isReady: boolean;
}

interface WithStatus extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly readyReplicas?: number };
}

/** The line of an object and the children that refer to it. */
export function rowOf(object: KubeObject, children: readonly KubeObject[]): Row {
  const { metadata, kind } = object;
  const condition = (object as WithStatus).status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    kind,
    object: metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`,
    ...judge(object, condition),
    children: summaryOf(children),
  };
}

function judge(
  { metadata }: KubeObject,
  condition: Condition | undefined,
): Pick<Row, 'ready' | 'reason' | 'message' | 'isReady'> {
  if (metadata.deletionTimestamp !== undefined) {
    const message = condition?.status === 'True' ? 'It is being deleted.' : (condition?.message ?? '');
    return { ready: 'False', reason: 'Deleting', message, isReady: false };
  }
  if (condition === undefined) {
    return { ready: '-', reason: 'Waiting', message: 'The operator has not reported on it yet.', isReady: false };
  }
  const { status: ready, reason, message, observedGeneration } = condition;
  const { generation } = metadata;
  if (observedGeneration !== undefined && generation !== undefined && observedGeneration < generation) {
    const seen = `The operator has reported on generation ${observedGeneration} of ${generation} so far.`;
    return { ready: 'Unknown', reason: 'Waiting', message: seen, isReady: false };
  }
  return { ready, reason, message, isReady: ready === 'True' };
}

/** The children by kind: how many, and of workloads how many pods are ready of how many wanted. */
function summaryOf(children: readonly KubeObject[]): string {
  const byKind = new Map<string, KubeObject[]>();
  for (const child of children) byKind.set(child.kind, [...(byKind.get(child.kind) ?? []), child]);
  const parts = [...byKind].map(([kind, all]) => {
    const count = all.length === 1 ? '' : ` x${all.length}`;
    const pods = all.filter((child) => (child as WithStatus).spec?.replicas !== undefined);
    const sum = (of: (child: WithStatus) => number | undefined): number =>
      pods.reduce((total, child) => total + (of(child as WithStatus) ?? 0), 0);
    if (pods.length === 0) return `${kind}${count}`;
    return `${kind}${count} ${sum(({ status }) => status?.readyReplicas)}/${sum(({ spec }) => spec?.replicas)}`;
  });
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/** Why an object is not Ready, in one line. */
export function reasonLine({ kind, object, ready, reason, message }: Row): string {
  return `${kind} ${object}: Ready=${ready} (${reason})${message === '' ? '' : `: ${message.replace(/\s+/g, ' ')}`}`;
}
