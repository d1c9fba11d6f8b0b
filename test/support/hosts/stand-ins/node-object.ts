import { sendRequest, type Identity } from './requests';
import type { Settings } from './settings';

/** Keeps a server's node until it has left etcd. */
export const ETCD_FINALIZER = 'stand-in.example.com/leaves-etcd';

/** A client of the API. */
export interface Api {
  readonly url: string;
  readonly identity: Identity;
}

/** A node as far as it is looked at. */
export interface NodeLike {
  readonly metadata: {
    readonly name: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
}

const nodes = '/api/v1/nodes';

/**
 * Registers this machine as a node, as a kubelet does: labels and taints count only when it is new. KWOK does the rest of a kubelet's work.
 */
export async function registerNode({ url, identity }: Api, settings: Settings, server: boolean): Promise<void> {
  const { nodeName, version } = settings;
  const path = `${url}${nodes}/${encodeURIComponent(nodeName)}`;
  const found = await sendRequest('GET', path, { identity });
  if (found.status === 404) {
    const created = await sendRequest('POST', `${url}${nodes}`, { identity, body: newNode(settings, server) });
    if (created.status !== 201) throw new Error(`the node was not created: ${created.text}`);
    return;
  }
  const body = { status: { nodeInfo: { kubeletVersion: version, kubeProxyVersion: version } } };
  const patched = await sendRequest('PATCH', `${path}/status`, {
    identity,
    body,
    type: 'application/merge-patch+json',
  });
  if (patched.status !== 200) throw new Error(`the node was not updated: ${patched.text}`);
}

export async function listNodes({ url, identity }: Api): Promise<readonly NodeLike[]> {
  const { status, text } = await sendRequest('GET', `${url}${nodes}`, { identity });
  if (status !== 200) throw new Error(`the nodes cannot be listed: ${text}`);
  return (JSON.parse(text) as { items: readonly NodeLike[] }).items;
}

/** Lets a node go that has left etcd. */
export async function removeEtcdFinalizer({ url, identity }: Api, { metadata }: NodeLike): Promise<void> {
  const body = { metadata: { finalizers: (metadata.finalizers ?? []).filter((name) => name !== ETCD_FINALIZER) } };
  const path = `${url}${nodes}/${encodeURIComponent(metadata.name)}`;
  await sendRequest('PATCH', path, { identity, body, type: 'application/merge-patch+json' });
}

function newNode({ nodeName, nodeIp, labels, taints, version, program }: Settings, server: boolean): unknown {
  const roles = server
    ? { 'node-role.kubernetes.io/control-plane': 'true', 'node-role.kubernetes.io/etcd': 'true' }
    : {};
  const given = Object.fromEntries(labels.map((label) => label.split('=', 2) as [string, string]));
  const size = { cpu: '4', memory: '8Gi', pods: '110' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { 'kubernetes.io/hostname': nodeName, 'kubernetes.io/os': 'linux', ...roles, ...given },
      ...(server && { finalizers: [ETCD_FINALIZER] }),
    },
    spec: { taints: taints.map(taintOf), providerID: `${program}://${nodeName}` },
    status: {
      capacity: size,
      allocatable: size,
      addresses: [
        { type: 'InternalIP', address: nodeIp },
        { type: 'Hostname', address: nodeName },
      ],
      nodeInfo: {
        ...{ architecture: 'amd64', operatingSystem: 'linux', kubeletVersion: version, kubeProxyVersion: version },
        ...{ machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: '', containerRuntimeVersion: '' },
      },
    },
  };
}

/** `key=value:effect` or `key:effect`. */
function taintOf(text: string): unknown {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?:(\w+)$/.exec(text) ?? [];
  return { key, effect, ...(value !== undefined && { value }) };
}
