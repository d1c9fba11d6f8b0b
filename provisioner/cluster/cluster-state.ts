import { createHash } from 'node:crypto';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { PlanRun, RunValues } from '../../operator/effects/plan-runner';
import type { ClusterInput } from '../../provision';
import { RKE_UP, refreshRkeRemoval } from '../../provision/rke';
import type { Endpoint, HostKeyStore } from '../ssh/ssh-transport';
import { toRecordedTask, type TaskRecord } from '../tasks/task-record';
import { HOST_KEYS, rkeOptions, type DesiredCluster } from './desired-cluster';

/** Room for what one task gives, such as the name of its machine, in bytes. */
const OUTPUT_BYTES = 192;
/** Room for what is larger, once for a cluster: its kubeconfig, host keys, the state of RKE, which no other may have. */
const ROOM_BYTES = 262_144;

/** Names of the values in a Cluster's state. */
const RECORDS = 'tasks';
const APPLIED = 'applied';
const PINNED_HOST_KEYS = 'host-keys';
const TEXTS = 'texts';

/** What is kept of a cluster between runs, in the state of its effects. */
export class ClusterState {
  constructor(private readonly values: RunValues) {}

  /** What was carried out so far. */
  get records(): readonly TaskRecord[] {
    return (this.read(RECORDS) as readonly TaskRecord[] | undefined) ?? [];
  }

  putRecords(records: readonly TaskRecord[]): Promise<void> {
    return this.values.put({ [RECORDS]: records.length === 0 ? undefined : JSON.stringify(records) });
  }

  /**
   * What carrying a plan out will have to store, before it is begun: should it be too large only halfway, machines would be left of which nobody
   * knows what to take away. What tasks will give is not known yet, so room is left for it.
   *
   * @throws PlanError `ErrStateTooLarge`
   */
  async assertFits({ plan, texts, input }: Pick<DesiredCluster, 'plan' | 'texts' | 'input'>): Promise<void> {
    const known = new Map(this.records.map((record) => [record.task.id, record]));
    for (const task of plan) {
      const { outputs = {} } = known.get(task.id) ?? {};
      const expected = (task.outputs ?? []).map((name) => [
        name,
        outputs[name] ?? incompressibleText(`${task.id} ${name}`, OUTPUT_BYTES),
      ]);
      known.set(task.id, {
        task: toRecordedTask(task),
        inputHash: createHash('sha256').update(task.id).digest('hex'),
        outputs: Object.fromEntries(expected) as Record<string, string>,
      });
    }
    await this.values.assertFit({
      [RECORDS]: JSON.stringify([...known.values()]),
      [APPLIED]: input === undefined ? undefined : JSON.stringify(input),
      [TEXTS]: JSON.stringify(texts),
      room: incompressibleText('room', ROOM_BYTES),
    });
  }

  /** What was applied last, as a whole. */
  get applied(): ClusterInput | undefined {
    return this.read(APPLIED) as ClusterInput | undefined;
  }

  putApplied(input: ClusterInput | undefined): Promise<void> {
    return this.values.put({ [APPLIED]: input === undefined ? undefined : JSON.stringify(input) });
  }

  /** What tasks read that stands in no Secret and no file of its own, by name: a cluster.yml as RKE is given it. It may hold secrets. */
  get texts(): Readonly<Record<string, string>> {
    return (this.read(TEXTS) as Readonly<Record<string, string>> | undefined) ?? {};
  }

  async putTexts(texts: Readonly<Record<string, string>>): Promise<void> {
    const text = Object.keys(texts).length === 0 ? undefined : JSON.stringify(texts);
    if (text !== this.values.all()[TEXTS]) await this.values.put({ [TEXTS]: text });
  }

  /** Host keys of machines whose key the spec does not give: the first one seen is held from then on. */
  get hostKeys(): HostKeyStore {
    const idOf = ({ address, port }: Endpoint): string => `[${address}]:${port}`;
    return {
      get: (endpoint) => Promise.resolve(this.pinnedHostKeys[idOf(endpoint)] ?? this.pinnedHostKeys[endpoint.address]),
      put: (endpoint, key) => this.pinHostKeys({ [idOf(endpoint)]: key }),
    };
  }

  /** The host keys that are held, by `[address]:port`, or by an address alone for each of its ports. */
  get pinnedHostKeys(): Readonly<Record<string, string>> {
    return (this.read(PINNED_HOST_KEYS) as Record<string, string> | undefined) ?? {};
  }

  /** Holds these keys from now on, besides those of other machines. */
  async pinHostKeys(keys: Readonly<Record<string, string>>): Promise<void> {
    const before = Object.entries(this.pinnedHostKeys);
    // A key for every port takes the place of those that were held for one.
    const others = before.filter(([endpoint]) => keys[/^\[(.*)\]:/.exec(endpoint)?.[1] ?? ''] === undefined);
    const text = JSON.stringify({ ...Object.fromEntries(others), ...keys });
    if (text !== JSON.stringify(Object.fromEntries(before))) await this.values.put({ [PINNED_HOST_KEYS]: text });
  }

  private read(name: string): unknown {
    const text = this.values.all()[name];
    return text === undefined ? undefined : JSON.parse(text);
  }
}

/** Text that no compression makes smaller than so many bytes, and always the same for a name. */
function incompressibleText(name: string, bytes: number): string {
  const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, i) =>
    createHash('sha256').update(`${name} ${i}`).digest(),
  );
  return Buffer.concat(blocks).toString('base64');
}

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
function knownHostKeys(object: KubeObject, state: ClusterState): string {
  const held = Object.entries(state.pinnedHostKeys);
  return [...hostKeysOfSpec(object), ...held].map(([endpoint, key]) => `${endpoint} ${key}\n`).join('');
}

/** Holds the keys that a spec gives for the machines of RKE, so that they are known when the machines leave it. */
export async function pinHostKeysOfSpec(
  object: KubeObject,
  plan: DesiredCluster['plan'],
  state: ClusterState,
): Promise<void> {
  if (plan.some(({ id }) => id === RKE_UP)) await state.pinHostKeys(Object.fromEntries(hostKeysOfSpec(object)));
}

/** Reads the files that tasks name: the host keys as they are known now, texts that stand in the state, and those of the configured directory. */
export function fileLookup(
  run: PlanRun,
  texts: DesiredCluster['texts'],
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
  plan: DesiredCluster['plan'],
  { records, texts }: ClusterState,
  trustOnFirstUse: boolean,
): readonly TaskRecord[] {
  const { name } = object.metadata;
  return records.map((record) => {
    if (plan.some(({ id }) => id === record.task.id)) return record;
    const task = refreshRkeRemoval(record.task, name, rkeOptions(trustOnFirstUse), (file) => texts[file]);
    return task === record.task ? record : { ...record, task };
  });
}

function hostKeysOfSpec({ spec }: KubeObject): readonly (readonly [string, string])[] {
  const { hostKeys = [], nodes = [] } = (spec ?? {}) as Spec;
  const machines = nodes.flatMap((node) => (node.bastion === undefined ? [node] : [node, node.bastion]));
  return [
    // The cluster.yml has the port.
    ...hostKeys.map(({ address, hostKey }) => [address, hostKey] as const),
    ...machines.map(({ address, port = 22, hostKey }) => [`[${address}]:${port}`, hostKey] as const),
  ].flatMap(([endpoint, key]) => (key === undefined ? [] : [[endpoint, key] as const]));
}
