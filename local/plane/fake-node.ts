import type { RestClient } from './rest';
import type { Probe } from './ready';

const nodeName = 'kindred-node-0';

/** The one node. KWOK knows it by the annotation, fills in its status, and runs every pod that is bound to it. */
const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: nodeName,
    annotations: { 'kwok.x-k8s.io/node': 'fake' },
    labels: {
      'kubernetes.io/hostname': nodeName,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'node-role.kubernetes.io/worker': '',
      type: 'kwok',
    },
  },
  status: {
    capacity: { cpu: '1k', memory: '1Ti', pods: '10k', 'ephemeral-storage': '1Ti' },
    allocatable: { cpu: '1k', memory: '1Ti', pods: '10k', 'ephemeral-storage': '1Ti' },
  },
};

/** Creates the node. */
export async function createFakeNode(rest: RestClient): Promise<void> {
  await rest.create('/api/v1/nodes', node);
}

/** True once pods can be created in the default namespace and will be scheduled. */
export function schedulable(rest: RestClient): Probe {
  return async () => {
    const [found, account] = await Promise.all([
      rest.ask('GET', `/api/v1/nodes/${nodeName}`),
      rest.ask('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
    ]);
    if (!isReady(found.body)) return `the node ${nodeName} is not Ready`;
    if (isTainted(found.body)) return `the node ${nodeName} is tainted`;
    return account.status === 200 ? true : 'the default ServiceAccount does not exist';
  };
}

interface NodeLike {
  readonly spec?: { readonly taints?: readonly unknown[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

function isReady(node: unknown): boolean {
  const conditions = (node as NodeLike).status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

/** Kubernetes taints a new node until its controllers have seen it ready. */
function isTainted(node: unknown): boolean {
  return ((node as NodeLike).spec?.taints ?? []).length > 0;
}
