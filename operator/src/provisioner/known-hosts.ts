import type { KubeObject } from '../../../constructs/kube/kube-object';
import { RKE_UP, rkeRecordToRemove } from '../../../provision/rke';
import type { PlanRun } from '../../effects/plan-runner';
import type { TaskRecord } from '../tasks';
import { HOST_KEYS, rkeOptions, type WantedCluster } from './cluster-source';
import type { ClusterState } from './cluster-state';

/** What of a spec says which keys its machines have. */
interface Spec {
  readonly hostKeys?: readonly Pinned[];
  readonly nodes?: readonly (Pinned & { readonly bastion?: Pinned })[];
}

interface Pinned {
  readonly address: string;
  readonly port?: number;
  readonly hostKey?: string;
}

/**
 * The host keys that are known of a cluster's machines, as the scripts of RKE read them: those of the spec as it is now, then those that are held
 * since they were met or given.
 */
export function knownHostKeys(object: KubeObject, state: ClusterState): string {
  const held = Object.entries(state.heldHostKeys);
  return [...given(object), ...held].map(([endpoint, key]) => `${endpoint} ${key}\n`).join('');
}

/** Holds the keys that a spec gives for the machines of RKE, so that they are known when the machines leave it. */
export async function holdHostKeys(
  object: KubeObject,
  plan: WantedCluster['plan'],
  state: ClusterState,
): Promise<void> {
  if (plan.some(({ id }) => id === RKE_UP)) await state.holdHostKeys(Object.fromEntries(given(object)));
}

/** Reads the files that tasks name: the host keys as they are known now, texts that stand in the state, and those of the configured directory. */
export function fileLookup(
  run: PlanRun,
  texts: WantedCluster['texts'],
  state: ClusterState,
): (path: string) => Promise<string> {
  return (path) => {
    if (path === HOST_KEYS) return Promise.resolve(knownHostKeys(run.object, state));
    const text = texts[path];
    return text === undefined ? run.file(path) : Promise.resolve(text);
  };
}

/** The records of a cluster. What of RKE has left the plan is removed as it is now, not as it would have been when it was recorded. */
export function recordsOf(
  { object }: PlanRun,
  plan: WantedCluster['plan'],
  { records, texts }: ClusterState,
  trustOnFirstUse: boolean,
): readonly TaskRecord[] {
  const { name } = object.metadata;
  return records.map((record) => {
    if (plan.some(({ id }) => id === record.task.id)) return record;
    const task = rkeRecordToRemove(record.task, name, rkeOptions(trustOnFirstUse), (file) => texts[file]);
    return task === record.task ? record : { ...record, task };
  });
}

function given({ spec }: KubeObject): readonly (readonly [string, string])[] {
  const { hostKeys = [], nodes = [] } = (spec ?? {}) as Spec;
  const machines = nodes.flatMap((node) => (node.bastion === undefined ? [node] : [node, node.bastion]));
  return [
    // The cluster.yml has the port.
    ...hostKeys.map(({ address, hostKey }) => [address, hostKey] as const),
    ...machines.map(({ address, port = 22, hostKey }) => [`[${address}]:${port}`, hostKey] as const),
  ].flatMap(([endpoint, key]) => (key === undefined ? [] : [[endpoint, key] as const]));
}
