import { createHash } from 'node:crypto';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { PlanRun, RunValues } from '../../operator/effects/plan-runner';
import type { ClusterInput } from '../../provision';
import { RKE_UP, refreshRkeRemoval } from '../../provision/rke';
import { sha256 } from '../../provision/task/sha256';
import type { Endpoint, HostKeyStore } from '../ssh/ssh-transport';
import { toRecordedTask, type TaskRecord } from '../tasks/task-record';
import { HOST_KEYS, rkeOptions, type DesiredCluster } from './desired-cluster';

/** Room reserved for one output of a task, such as a host name, in bytes. */
const OUTPUT_BYTES = 192;
/**
 * Room reserved once per cluster for large outputs: the kubeconfig, host keys, the state of RKE; in bytes.
 */
const ROOM_BYTES = 262_144;

/** Names of the values in a Cluster's state. */
const RECORDS = 'tasks';
const APPLIED = 'applied';
const PINNED_HOST_KEYS = 'host-keys';
const TEXTS = 'texts';

/** What is stored of a cluster between runs, as values of its effect state. */
export class ClusterState {
  constructor(private readonly values: RunValues) {}

  /** The tasks executed so far. */
  get records(): readonly TaskRecord[] {
    return (this.read(RECORDS) as readonly TaskRecord[] | undefined) ?? [];
  }

  putRecords(records: readonly TaskRecord[]): Promise<void> {
    return this.values.put({ [RECORDS]: records.length === 0 ? undefined : JSON.stringify(records) });
  }

  /**
   * Checks, before a plan is executed, that everything it will store fits. If the state became too large
   * halfway, the records needed to remove what was installed would be missing. Room is reserved for outputs
   * not known yet.
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
        inputHash: sha256(task.id),
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

  /** The input that was last applied completely. */
  get applied(): ClusterInput | undefined {
    return this.read(APPLIED) as ClusterInput | undefined;
  }

  putApplied(input: ClusterInput | undefined): Promise<void> {
    return this.values.put({ [APPLIED]: input === undefined ? undefined : JSON.stringify(input) });
  }

  /**
   * Texts that tasks read as files, but that no file contains, such as the cluster.yml given to RKE; by name.
   * May contain secrets.
   */
  get texts(): Readonly<Record<string, string>> {
    return (this.read(TEXTS) as Readonly<Record<string, string>> | undefined) ?? {};
  }

  async putTexts(texts: Readonly<Record<string, string>>): Promise<void> {
    const text = Object.keys(texts).length === 0 ? undefined : JSON.stringify(texts);
    if (text !== this.values.all()[TEXTS]) await this.values.put({ [TEXTS]: text });
  }

  /** Host keys of machines whose key the spec does not give: the first one seen is pinned. */
  get hostKeys(): HostKeyStore {
    const idOf = ({ address, port }: Endpoint): string => `[${address}]:${port}`;
    return {
      get: (endpoint) => Promise.resolve(this.pinnedHostKeys[idOf(endpoint)] ?? this.pinnedHostKeys[endpoint.address]),
      put: (endpoint, key) => this.pinHostKeys({ [idOf(endpoint)]: key }),
    };
  }

  /** The pinned host keys, by `[address]:port`, or by an address alone for all of its ports. */
  get pinnedHostKeys(): Readonly<Record<string, string>> {
    return (this.read(PINNED_HOST_KEYS) as Record<string, string> | undefined) ?? {};
  }

  /** Pins these keys, in addition to those of other machines. */
  async pinHostKeys(keys: Readonly<Record<string, string>>): Promise<void> {
    const before = Object.entries(this.pinnedHostKeys);
    // A key for all ports replaces those pinned for a single port.
    const others = before.filter(([endpoint]) => keys[/^\[(.*)\]:/.exec(endpoint)?.[1] ?? ''] === undefined);
    const text = JSON.stringify({ ...Object.fromEntries(others), ...keys });
    if (text !== JSON.stringify(Object.fromEntries(before))) await this.values.put({ [PINNED_HOST_KEYS]: text });
  }

  private read(name: string): unknown {
    const text = this.values.all()[name];
    return text === undefined ? undefined : JSON.parse(text);
  }
}

/** Text that does not compress below this number of bytes; the same for the same name. */
function incompressibleText(name: string, bytes: number): string {
  const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, i) =>
    createHash('sha256').update(`${name} ${i}`).digest(),
  );
  return Buffer.concat(blocks).toString('base64');
}

/**
 * Reads the files that tasks name: the host keys known now, texts of the plan, and files of the configured
 * directory.
 */
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

/**
 * The records of a cluster. An RKE task that left the plan is removed by the current script, not the recorded
 * one.
 */
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

/**
 * Pins the host keys that the spec gives for machines of RKE, so that they are known once the machines leave
 * the spec.
 */
export async function pinHostKeysOfSpec(
  object: KubeObject,
  plan: DesiredCluster['plan'],
  state: ClusterState,
): Promise<void> {
  if (plan.some(({ id }) => id === RKE_UP)) await state.pinHostKeys(Object.fromEntries(hostKeysOfSpec(object)));
}

/**
 * The known host keys of a cluster's machines, in the format that RKE's scripts read: those of the present
 * spec, then the pinned ones.
 */
function knownHostKeys(object: KubeObject, state: ClusterState): string {
  const held = Object.entries(state.pinnedHostKeys);
  return [...hostKeysOfSpec(object), ...held].map(([endpoint, key]) => `${endpoint} ${key}\n`).join('');
}

/** The fields of a spec that give host keys. */
interface Spec {
  readonly hostKeys?: readonly Pinned[];
  readonly nodes?: readonly (Pinned & { readonly bastion?: Pinned })[];
}

interface Pinned {
  readonly address: string;
  readonly port?: number;
  readonly hostKey?: string;
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
