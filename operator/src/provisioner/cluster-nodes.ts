import type { Node } from '../../../constructs/provision';
import type { TaskEvent, TaskRecord } from '../tasks';

/** One entry of `status.nodes`. */
export interface NodeStatus {
  readonly address: string;
  readonly roles?: readonly string[];
  readonly state: 'Pending' | 'Provisioning' | 'Ready' | 'Failed' | 'Removing' | 'Removed';
  readonly version?: string;
  readonly message?: string;
}

/** Longest message of a node, in characters; the schema has it. */
const MAX_MESSAGE = 4096;

/** Keeps `status.nodes` as tasks begin and end. A task belongs to the machine that its id begins with. */
export class ClusterNodes {
  private readonly nodes: Map<string, NodeStatus>;

  /** @param before - entries that stand: nodes that left the spec are shown until they are gone */
  constructor(wanted: readonly Node[], before: readonly NodeStatus[]) {
    const known = new Map(before.map((node) => [node.address, node]));
    const entries = wanted.map(({ address, roles }): NodeStatus => {
      const { state = 'Pending', version } = known.get(address) ?? {};
      return { address, roles, state, ...(version === undefined ? {} : { version }) };
    });
    const leaving = before.filter(({ address }) => !wanted.some((node) => node.address === address));
    this.nodes = new Map([...entries, ...leaving].map((node) => [node.address, node]));
  }

  /** Takes in what happened to a task. */
  happened({ task, action, phase, message }: TaskEvent): void {
    const node = this.nodes.get(addressOf(task.id));
    if (node === undefined) return;
    const { address, roles, version } = node;
    const rest = { address, ...(roles && { roles }), ...(version !== undefined && { version }) };
    const text = (phase === 'failed' ? message : task.description)?.slice(0, MAX_MESSAGE);
    const told = text === undefined ? {} : { message: text };
    if (phase === 'failed') this.set({ ...rest, state: 'Failed', ...told });
    // What a step says at its end is no news: the next one begins at once.
    else if (phase === 'started')
      this.set({ ...rest, state: action === 'remove' ? 'Removing' : 'Provisioning', ...told });
  }

  /** Every wanted node is as it should be, all others are gone. */
  completed(wanted: readonly Node[], version: string): void {
    this.nodes.clear();
    for (const { address, roles } of wanted) this.set({ address, roles, state: 'Ready', version });
  }

  /** Nodes of which no task is left are gone. */
  keepOnly(records: readonly TaskRecord[]): void {
    const left = new Set(records.map(({ task }) => addressOf(task.id)));
    for (const address of this.nodes.keys()) if (!left.has(address)) this.nodes.delete(address);
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
