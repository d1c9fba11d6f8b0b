import { childState } from '../../../operator/status/child-status';

interface Parts {
  readonly status?: unknown;
  readonly spec?: object;
  readonly metadata?: object;
  readonly now?: number;
}

function of(apiVersion: string, kind: string, { status, spec, metadata, now = 0 }: Parts = {}): string {
  const child = { apiVersion, kind, metadata: { name: 'x', ...metadata }, spec, status };
  const state = childState(child, now);
  return state.state === 'Current' ? 'Current' : `${state.state}: ${state.message}`;
}

const condition = (type: string, status: string, message = 'The words.', reason = 'Because'): object => ({
  conditions: [{ type, status, reason, message }],
});
const custom = (status: unknown, metadata: object = { generation: 2 }): string =>
  of('example.com/v1', 'Database', { status, metadata });

describe('a type without a rule of its own', () => {
  it.each<[string, string, string]>([
    ['without a status', custom(undefined), 'Current'],
    ['Ready', custom(condition('Ready', 'True')), 'Current'],
    ['not Ready', custom(condition('Ready', 'False')), 'InProgress: The words.'],
    ['of which nobody knows whether it is Ready', custom(condition('Ready', 'Unknown')), 'InProgress: The words.'],
    ['not Ready for a reason alone', custom(condition('Ready', 'False', '')), 'InProgress: Because'],
    [
      'not Ready without a word',
      custom({ conditions: [{ type: 'Ready', status: 'False' }] }),
      'InProgress: its condition Ready is False',
    ],
    ['Reconciling', custom(condition('Reconciling', 'True')), 'InProgress: The words.'],
    ['no longer Reconciling', custom(condition('Reconciling', 'False')), 'Current'],
    ['Stalled', custom(condition('Stalled', 'True')), 'Failed: The words.'],
    ['no longer Stalled', custom(condition('Stalled', 'False')), 'Current'],
    [
      'Stalled and not Ready',
      custom({
        conditions: [
          { type: 'Ready', status: 'False' },
          { type: 'Stalled', status: 'True', message: 'No.' },
        ],
      }),
      'Failed: No.',
    ],
    [
      'Ready, of an old generation',
      custom({ observedGeneration: 1, ...condition('Ready', 'True') }),
      'InProgress: its controller has seen generation 1 of 2',
    ],
    [
      'of a generation before the one seen, as after a restore',
      custom({ observedGeneration: 3 }),
      'InProgress: its controller has seen generation 3 of 2',
    ],
    [
      'being deleted, though Ready',
      custom(condition('Ready', 'True'), { deletionTimestamp: 't' }),
      'Terminating: it is being deleted',
    ],
    ['whose status is a text', custom('fine'), 'Current'],
    ['whose conditions are no list', custom({ conditions: { Ready: 'False' } }), 'Current'],
    ['whose conditions are texts', custom({ conditions: ['Ready', null] }), 'Current'],
  ])('%s', (_, actual, expected) => {
    expect(actual).toBe(expected);
  });

  it.each([
    ['batch.volcano.sh/v1alpha1', 'Job'],
    ['example.com/v1', 'Deployment'],
    ['example.com/v1', 'PersistentVolumeClaim'],
    ['serving.knative.dev/v1', 'Service'],
  ])('%s %s is not judged as the built-in type of its name', (apiVersion, kind) => {
    expect(of(apiVersion, kind, { spec: { type: 'LoadBalancer' } })).toBe('Current');
    expect(of(apiVersion, kind, { status: condition('Ready', 'False') })).toBe('InProgress: The words.');
  });
});

describe('built-in types', () => {
  const pods = { observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2 };
  const set = (status: object): string => of('apps/v1', 'ReplicaSet', { spec: { replicas: 2 }, status });
  const crd = (status: object): string => of('apiextensions.k8s.io/v1', 'CustomResourceDefinition', { status });
  const pod = (status: object, now = 0): string =>
    of('v1', 'Pod', { status, now, metadata: { creationTimestamp: '1970-01-01T00:00:00Z' } });
  const crashing = [
    { name: 'web', state: { waiting: { reason: 'CrashLoopBackOff' } } },
    { name: 'log', state: {} },
  ];
  const unschedulable = { phase: 'Pending', ...condition('PodScheduled', 'False', '0/1 nodes', 'Unschedulable') };

  it.each<[string, string, string]>([
    ['ReplicaSet, done', set(pods), 'Current'],
    ['ReplicaSet, refused', set({ ...pods, ...condition('ReplicaFailure', 'True') }), 'InProgress: The words.'],
    ['ReplicaSet, labelled', set({ ...pods, fullyLabeledReplicas: 1 }), 'InProgress: 1 of 2 replicas labelled'],
    ['ReplicaSet, available', set({ ...pods, availableReplicas: 1 }), 'InProgress: 1 of 2 replicas available'],
    ['ReplicaSet, ready', set({ ...pods, readyReplicas: 1 }), 'InProgress: 1 of 2 replicas ready'],
    ['ReplicaSet, surplus', set({ ...pods, replicas: 3 }), 'InProgress: 1 surplus replicas still stand'],
    ['ReplicaSet, of the old group', of('extensions/v1beta1', 'ReplicaSet'), 'InProgress: 0 of 1 replicas labelled'],

    ['Pod, unseen', pod({}), 'InProgress: its phase is not known'],
    ['Pod, pending', pod({ phase: 'Pending' }), 'InProgress: it is pending'],
    ['Pod, not scheduled yet', pod(unschedulable, 14_000), 'InProgress: 0/1 nodes'],
    ['Pod, that cannot be scheduled', pod(unschedulable, 15_000), 'Failed: 0/1 nodes'],
    ['Pod, ready', pod({ phase: 'Running', ...condition('Ready', 'True') }), 'Current'],
    ['Pod, not ready', pod({ phase: 'Running', ...condition('Ready', 'False') }), 'InProgress: The words.'],
    [
      'Pod, crashing',
      pod({ phase: 'Running', ...condition('Ready', 'False'), containerStatuses: crashing }),
      'Failed: these containers crash again and again: web',
    ],
    ['Pod, succeeded', pod({ phase: 'Succeeded' }), 'Current'],
    ['Pod, failed', pod({ phase: 'Failed' }), 'Current'],

    ['CRD, unseen', crd({}), 'InProgress: it is not established yet'],
    ['CRD, established', crd(condition('Established', 'True')), 'Current'],
    ['CRD, being installed', crd(condition('Established', 'False', 'Soon.', 'Installing')), 'InProgress: Soon.'],
    ['CRD, not established', crd(condition('Established', 'False')), 'Failed: The words.'],
    ['CRD, its names taken', crd(condition('NamesAccepted', 'False')), 'Failed: The words.'],

    ['Service', of('v1', 'Service', { spec: { type: 'ClusterIP' } }), 'Current'],
    [
      'Service, its balancer without an address',
      of('v1', 'Service', { spec: { type: 'LoadBalancer' } }),
      'InProgress: it has no cluster IP yet',
    ],
    ['Service, balanced', of('v1', 'Service', { spec: { type: 'LoadBalancer', clusterIP: '10.0.0.1' } }), 'Current'],
    ['CronJob', of('batch/v1', 'CronJob', { status: condition('Ready', 'False') }), 'Current'],
    ['PodDisruptionBudget', of('policy/v1', 'PodDisruptionBudget'), 'Current'],
    ['Secret', of('v1', 'Secret'), 'Current'],
    ['HorizontalPodAutoscaler', of('autoscaling/v2', 'HorizontalPodAutoscaler', { status: {} }), 'Current'],
  ])('%s', (_, actual, expected) => {
    expect(actual).toBe(expected);
  });

  it('a pod that is not scheduled yet is looked at again when its time is over', () => {
    const metadata = { name: 'x', creationTimestamp: '1970-01-01T00:00:00Z' };
    const child = { apiVersion: 'v1', kind: 'Pod', metadata, status: unschedulable };
    expect(childState(child, 14_000)).toMatchObject({ state: 'InProgress', againMs: 1000 });
  });
});
