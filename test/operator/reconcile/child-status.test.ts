import { childState } from '../../../operator/src/reconcile/child-status';

const unseen = 'its controller has not seen it yet';

function of(
  kind: string,
  status?: object,
  spec: object = { replicas: 2 },
  metadata: object = { generation: 1 },
): string {
  const state = childState({
    apiVersion: 'x/v1',
    kind,
    metadata: { name: 'x', ...metadata },
    spec,
    ...(status && { status }),
  });
  return state.state === 'Current' ? 'Current' : `${state.state}: ${state.message}`;
}

const done = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };
const condition = (type: string, status: string, reason: string, message: string): object => ({
  conditions: [
    { type: 'Available', status: 'True' },
    { type, status, reason, message },
  ],
});

describe('childState', () => {
  it.each<[string, string, string]>([
    ['a ConfigMap', of('ConfigMap'), 'Current'],
    ['a Service', of('Service', {}), 'Current'],
    [
      'what is being deleted',
      of('ConfigMap', undefined, {}, { deletionTimestamp: 'x' }),
      'Terminating: it is being deleted',
    ],
    [
      'an old generation',
      of('Deployment', done, {}, { generation: 3 }),
      'InProgress: its controller has seen generation 1 of 3',
    ],
    [
      'an old generation of any kind',
      of('Whatever', { observedGeneration: 1 }, {}, { generation: 2 }),
      'InProgress: its controller has seen generation 1 of 2',
    ],

    ['Deployment, done', of('Deployment', done), 'Current'],
    ['Deployment, unseen', of('Deployment'), `InProgress: ${unseen}`],
    ['Deployment, empty status', of('Deployment', {}), `InProgress: ${unseen}`],
    [
      'Deployment, quota',
      of('Deployment', { ...done, ...condition('ReplicaFailure', 'True', 'FailedCreate', 'exceeded quota') }),
      'InProgress: exceeded quota',
    ],
    [
      'Deployment, quota no more',
      of('Deployment', { ...done, ...condition('ReplicaFailure', 'False', 'x', 'y') }),
      'Current',
    ],
    [
      'Deployment, too late',
      of('Deployment', {
        ...done,
        readyReplicas: 0,
        ...condition('Progressing', 'False', 'ProgressDeadlineExceeded', 'timed out'),
      }),
      'Failed: timed out',
    ],
    ['Deployment, updating', of('Deployment', { ...done, updatedReplicas: 1 }), 'InProgress: 1 of 2 replicas updated'],
    ['Deployment, old pods', of('Deployment', { ...done, replicas: 3 }), 'InProgress: 1 surplus replicas still stand'],
    ['Deployment, not ready', of('Deployment', { ...done, readyReplicas: 0 }), 'InProgress: 0 of 2 replicas ready'],
    [
      'Deployment, not available',
      of('Deployment', { ...done, availableReplicas: 1 }),
      'InProgress: 1 of 2 replicas available',
    ],
    ['Deployment, to zero', of('Deployment', { observedGeneration: 1 }, { replicas: 0 }), 'Current'],
    [
      'Deployment, to zero but not yet',
      of('Deployment', { observedGeneration: 1, replicas: 1 }, { replicas: 0 }),
      'InProgress: 1 surplus replicas still stand',
    ],
    [
      'Deployment, one by default',
      of('Deployment', { observedGeneration: 1 }, {}),
      'InProgress: 0 of 1 replicas updated',
    ],

    ['StatefulSet, done', of('StatefulSet', done), 'Current'],
    ['StatefulSet, unseen', of('StatefulSet', {}), `InProgress: ${unseen}`],
    ['StatefulSet, not ready', of('StatefulSet', { ...done, readyReplicas: 1 }), 'InProgress: 1 of 2 replicas ready'],
    [
      'StatefulSet, not updated',
      of('StatefulSet', { ...done, updatedReplicas: 0 }),
      'InProgress: 0 of 2 replicas updated',
    ],

    [
      'DaemonSet, done',
      of('DaemonSet', {
        observedGeneration: 1,
        desiredNumberScheduled: 2,
        updatedNumberScheduled: 2,
        numberAvailable: 2,
      }),
      'Current',
    ],
    ['DaemonSet, unseen', of('DaemonSet'), `InProgress: ${unseen}`],
    [
      'DaemonSet, not updated',
      of('DaemonSet', { observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1 }),
      'InProgress: 1 of 2 replicas updated',
    ],
    [
      'DaemonSet, not available',
      of('DaemonSet', { observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2 }),
      'InProgress: 0 of 2 replicas available',
    ],

    ['Job, started', of('Job', { active: 1 }), 'Current'],
    ['Job, unseen', of('Job'), `InProgress: ${unseen}`],
    ['Job, failed', of('Job', condition('Failed', 'True', 'BackoffLimitExceeded', 'too often')), 'Failed: too often'],
    ['claim, bound', of('PersistentVolumeClaim', { phase: 'Bound' }), 'Current'],
    ['claim, pending', of('PersistentVolumeClaim', { phase: 'Pending' }), 'InProgress: the claim is Pending'],
    ['claim, unseen', of('PersistentVolumeClaim'), 'InProgress: the claim is not yet seen'],
  ])('%s', (_, actual, expected) => {
    expect(actual).toBe(expected);
  });
});
