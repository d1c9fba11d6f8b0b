import { ClusterNodes } from '../../../provisioner/cluster/cluster-plans';
import type { TaskEvent } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';

const wanted = [
  { address: '10.0.0.1', roles: ['controlplane' as const] },
  { address: '10.0.0.2', roles: ['worker' as const] },
];
const event = (id: string, phase: TaskEvent['phase'], more: Partial<TaskEvent> = {}): TaskEvent => ({
  task: { id, description: `do ${id}` },
  action: 'apply',
  phase,
  ...more,
});
const record = (id: string): TaskRecord => ({
  task: { id, description: '', after: [], timeoutSeconds: 1 },
  outputs: {},
});
const states = (nodes: ClusterNodes): unknown => nodes.list().map(({ address, state }) => `${address} ${state}`);

test('a machine is pending until a task of its own starts, and failed when one fails', () => {
  const nodes = new ClusterNodes(wanted, []);
  nodes.onTaskEvent(event('10.0.0.1/install', 'started'));
  expect(states(nodes)).toEqual(['10.0.0.1 Provisioning', '10.0.0.2 Pending']);
  nodes.onTaskEvent(event('10.0.0.1/install', 'failed', { message: 'x'.repeat(5000) }));
  expect(states(nodes)).toEqual(['10.0.0.1 Failed', '10.0.0.2 Pending']);
  expect(nodes.list()[0]?.message).toHaveLength(1024);
});

test('a task of the whole cluster is none of a machine', () => {
  const nodes = new ClusterNodes(wanted, []);
  nodes.onTaskEvent(event('rke/up', 'failed', { message: 'no' }));
  expect(states(nodes)).toEqual(['10.0.0.1 Pending', '10.0.0.2 Pending']);
});

test('wanted machines stay when nothing was begun on them; others go with their last task', () => {
  const nodes = new ClusterNodes(wanted, [
    { address: '10.0.0.8', state: 'Ready' },
    { address: '10.0.0.9', state: 'Ready' },
  ]);
  nodes.onTaskEvent(event('10.0.0.9/install', 'started', { action: 'remove' }));
  nodes.dropRemoved([record('10.0.0.9/install')]);
  expect(states(nodes)).toEqual(['10.0.0.1 Pending', '10.0.0.2 Pending', '10.0.0.9 Removing']);
});

test('in the end there are those that are wanted, with their version if one is known', () => {
  const nodes = new ClusterNodes(wanted, [{ address: '10.0.0.9', state: 'Ready' }]);
  nodes.setAllReady(wanted, 'v1.30.5+k3s1');
  expect(nodes.list()).toEqual([
    { address: '10.0.0.1', roles: ['controlplane'], state: 'Ready', version: 'v1.30.5+k3s1' },
    { address: '10.0.0.2', roles: ['worker'], state: 'Ready', version: 'v1.30.5+k3s1' },
  ]);
  nodes.setAllReady(wanted, undefined);
  expect(nodes.list()[0]).not.toHaveProperty('version');
});
