import type { Node } from '../../../provision';
import { beginningOf } from '../../process/truncate';
import type { TaskEvent, TaskRecord } from '../tasks';

/** One entry of `status.nodes`. */
export interface NodeStatus {
  readonly address: string;
  readonly roles?: readonly string[];
  readonly state: 'Pending' | 'Provisioning' | 'Ready' | 'Failed' | 'Removing' | 'Removed';
  readonly version?: string;
  readonly message?: string;
}

/** Longest message of a node, in characters. The schema takes more, but an object with many nodes must fit into etcd. */
const MAX_MESSAGE = 1024;

/** Keeps `status.nodes` as tasks begin and end. A task belongs to the machine that its id begins with. */
export class ClusterNodes {
  private readonly nodes: Map<string, NodeStatus>;
  private readonly wanted: ReadonlySet<string>;

  /** @param before - entries that stand: nodes that left the spec are shown until they are gone */
  constructor(wanted: readonly Pick<Node, 'address' | 'roles'>[], before: readonly NodeStatus[]) {
    this.wanted = new Set(wanted.map(({ address }) => address));
    const known = new Map(before.map((node) => [node.address, node]));
    const entries = wanted.map(({ address, roles }): NodeStatus => {
      const { state = 'Pending', version } = known.get(address) ?? {};
      return { address, roles, state, ...(version === undefined ? {} : { version }) };
    });
    const leaving = before.filter(({ address }) => !this.wanted.has(address));
    this.nodes = new Map([...entries, ...leaving].map((node) => [node.address, node]));
  }

  /** Takes in what happened to a task. */
  happened({ task, action, phase, message }: TaskEvent): void {
    const node = this.nodes.get(addressOf(task.id));
    if (node === undefined) return;
    const { address, roles, version } = node;
    const rest = { address, ...(roles && { roles }), ...(version !== undefined && { version }) };
    const text = phase === 'failed' ? message : task.description;
    const told = text === undefined ? {} : { message: beginningOf(text, MAX_MESSAGE) };
    if (phase === 'failed') this.set({ ...rest, state: 'Failed', ...told });
    // What a step says at its end is no news: the next one begins at once.
    else if (phase === 'started')
      this.set({ ...rest, state: action === 'remove' ? 'Removing' : 'Provisioning', ...told });
  }

  /** Every wanted node is as it should be, all others are gone. */
  completed(wanted: readonly Pick<Node, 'address' | 'roles'>[], version: string | undefined): void {
    this.nodes.clear();
    const rest = version === undefined ? {} : { version };
    for (const { address, roles } of wanted) this.set({ address, roles, state: 'Ready', ...rest });
  }

  /** Nodes that are not wanted, and of which no task is left, are gone. */
  keepOnly(records: readonly TaskRecord[]): void {
    const left = new Set(records.map(({ task }) => addressOf(task.id)));
    for (const address of this.nodes.keys()) {
      if (!this.wanted.has(address) && !left.has(address)) this.nodes.delete(address);
    }
  }

  list(): readonly NodeStatus[] {
    return [...this.nodes.values()];
  }

  private set(node: NodeStatus): void {
    this.nodes.set(node.address, node);
  }
}

function addressOf(taskId: string): string {
  return taskId.slice(0, Math.max(taskId.lastIndexOf('/'), 0));
}
