import { childState } from '../../../operator/status/child-status';

const unseen = 'its controller has not seen it yet';

const API_VERSIONS: Readonly<Record<string, string>> = {
  ConfigMap: 'v1',
  Service: 'v1',
  PersistentVolumeClaim: 'v1',
  Job: 'batch/v1',
  Whatever: 'example.com/v1',
};

function of(
  kind: string,
  status?: object,
  spec: object = { replicas: 2 },
  metadata: object = { generation: 1 },
): string {
  const child = {
    apiVersion: API_VERSIONS[kind] ?? 'apps/v1',
    kind,
    metadata: { name: 'x', ...metadata },
    spec,
    ...(status && { status }),
  };
  const state = childState(child, 0);
  return state.state === 'Current' ? 'Current' : `${state.state}: ${state.message}`;
}

const available = { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'Available.' };
const rolledOut = { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: 'Done.' };
const counts = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };
const done = { ...counts, conditions: [available, rolledOut] };
const none = { observedGeneration: 1, conditions: [available, rolledOut] };
const condition = (type: string, status: string, reason: string, message: string): object => ({
  conditions: [available, { type, status, reason, message }],
});
const deadline = { replicas: 2, progressDeadlineSeconds: 600 };
const paused = { replicas: 2, paused: true };
const sets = { ...counts, currentReplicas: 2, currentRevision: 'a', updateRevision: 'a' };
const rolling = { replicas: 2, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } };
const daemons = {
  observedGeneration: 1,
  desiredNumberScheduled: 2,
  currentNumberScheduled: 2,
  updatedNumberScheduled: 2,
  numberAvailable: 2,
  numberReady: 2,
};

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
    [
      'Deployment, paused amid an update',
      of('Deployment', { ...done, updatedReplicas: 1 }, paused, { generation: 1, namespace: 'shop' }),
      'InProgress: its rollout is paused, with 1 of 2 replicas updated; to go on: kubectl rollout resume deployment/x --namespace=shop',
    ],
    [
      'Deployment, paused before old pods are deleted',
      of('Deployment', { ...done, replicas: 3 }, paused),
      'InProgress: its rollout is paused, with 2 of 2 replicas updated; to go on: kubectl rollout resume deployment/x',
    ],
    [
      'Deployment, paused without a change',
      of('Deployment', { ...counts, ...condition('Progressing', 'Unknown', 'DeploymentPaused', 'It is.') }, paused),
      'InProgress: its rollout is paused, with 2 of 2 replicas updated; to go on: kubectl rollout resume deployment/x',
    ],
    ['Deployment, paused without a deadline or a change', of('Deployment', done, paused), 'Current'],
    [
      'Deployment, paused and not ready',
      of('Deployment', { ...done, readyReplicas: 0 }, paused),
      'InProgress: 0 of 2 replicas ready',
    ],
    [
      'Deployment, paused and not yet seen',
      of('Deployment', { ...done, updatedReplicas: 1 }, paused, { generation: 2 }),
      'InProgress: its controller has seen generation 1 of 2',
    ],
    ['Deployment, old pods', of('Deployment', { ...done, replicas: 3 }), 'InProgress: 1 surplus replicas still stand'],
    ['Deployment, not ready', of('Deployment', { ...done, readyReplicas: 0 }), 'InProgress: 0 of 2 replicas ready'],
    [
      'Deployment, not available',
      of('Deployment', { ...done, availableReplicas: 1 }),
      'InProgress: 1 of 2 replicas available',
    ],
    ['Deployment, to zero', of('Deployment', none, { replicas: 0 }), 'Current'],
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

    [
      'Deployment, its rollout not reported',
      of('Deployment', { ...counts, conditions: [available] }, deadline),
      'InProgress: its ReplicaSet is not available yet',
    ],
    [
      'Deployment, its rollout under way',
      of('Deployment', { ...counts, conditions: [{ ...rolledOut, reason: 'ReplicaSetUpdated' }, available] }, deadline),
      'InProgress: Done.',
    ],
    ['Deployment, its rollout done', of('Deployment', done, deadline), 'Current'],
    ['Deployment, without a deadline', of('Deployment', { ...counts, conditions: [available] }), 'Current'],
    [
      'Deployment, its deadline never',
      of('Deployment', { ...counts, conditions: [available] }, { ...deadline, progressDeadlineSeconds: 2147483647 }),
      'Current',
    ],
    [
      'Deployment, its ReplicaSet refused',
      of('Deployment', { ...counts, ...condition('Progressing', 'False', 'ReplicaSetCreateError', 'no') }, deadline),
      'InProgress: no',
    ],
    [
      'Deployment, not available by its condition',
      of('Deployment', { ...counts, conditions: [rolledOut, { ...available, status: 'False', message: 'Too few.' }] }),
      'InProgress: Too few.',
    ],
    ['Deployment, availability unknown', of('Deployment', counts), 'InProgress: it is not available yet'],

    ['StatefulSet, done', of('StatefulSet', sets), 'Current'],
    ['StatefulSet, unseen', of('StatefulSet', {}), `InProgress: ${unseen}`],
    ['StatefulSet, not created', of('StatefulSet', { ...sets, replicas: 1 }), 'InProgress: 1 of 2 replicas created'],
    ['StatefulSet, not ready', of('StatefulSet', { ...sets, readyReplicas: 1 }), 'InProgress: 1 of 2 replicas ready'],
    [
      'StatefulSet, old pods',
      of('StatefulSet', { ...sets, replicas: 3 }),
      'InProgress: 1 surplus replicas still stand',
    ],
    [
      'StatefulSet, not updated',
      of('StatefulSet', { ...sets, updatedReplicas: 0, currentRevision: 'b' }),
      'InProgress: 0 of 2 replicas updated',
    ],
    [
      'StatefulSet, an update that is not complete',
      of('StatefulSet', { ...sets, currentRevision: 'b' }),
      'InProgress: its update is not complete yet',
    ],
    [
      'StatefulSet, not current',
      of('StatefulSet', { ...sets, currentReplicas: 1 }),
      'InProgress: 1 of 2 replicas current',
    ],
    ['StatefulSet, updated by hand', of('StatefulSet', undefined, { updateStrategy: { type: 'OnDelete' } }), 'Current'],
    [
      'StatefulSet, up to its partition',
      of('StatefulSet', { ...sets, updatedReplicas: 1, currentReplicas: 1, currentRevision: 'b' }, rolling),
      'Current',
    ],
    [
      'StatefulSet, not up to its partition',
      of('StatefulSet', { ...sets, updatedReplicas: 0, currentRevision: 'b' }, rolling),
      'InProgress: 0 of 1 replicas updated',
    ],

    ['DaemonSet, done', of('DaemonSet', daemons), 'Current'],
    ['DaemonSet, on no node', of('DaemonSet', { observedGeneration: 1, desiredNumberScheduled: 0 }), 'Current'],
    ['DaemonSet, unseen', of('DaemonSet'), `InProgress: ${unseen}`],
    [
      'DaemonSet, without a wanted number',
      of('DaemonSet', { observedGeneration: 1 }),
      'InProgress: its controller has not said how many pods it is to have',
    ],
    ...(
      [
        ['currentNumberScheduled', 'scheduled'],
        ['updatedNumberScheduled', 'updated'],
        ['numberAvailable', 'available'],
        ['numberReady', 'ready'],
      ] as const
    ).map(([field, word]): [string, string, string] => [
      `DaemonSet, not ${word}`,
      of('DaemonSet', { ...daemons, [field]: 1 }),
      `InProgress: 1 of 2 replicas ${word}`,
    ]),

    ['Job, unseen', of('Job'), 'InProgress: it has not been started yet'],
    ['Job, started', of('Job', { startTime: 't', active: 1 }, {}), 'InProgress: 0 of 1 pods succeeded'],
    [
      'Job, half done',
      of('Job', { startTime: 't', succeeded: 2 }, { parallelism: 3 }),
      'InProgress: 2 of 3 pods succeeded',
    ],
    [
      'Job, nearly done',
      of('Job', { startTime: 't', succeeded: 4 }, { completions: 5, parallelism: 3 }),
      'InProgress: 4 of 5 pods succeeded',
    ],
    [
      'Job, suspended',
      of('Job', condition('Suspended', 'True', 'JobSuspended', 'Job suspended')),
      'InProgress: Job suspended',
    ],
    [
      'Job, complete',
      of('Job', { startTime: 't', ...condition('Complete', 'True', 'CompletionsReached', '') }),
      'Current',
    ],
    ['Job, failed', of('Job', condition('Failed', 'True', 'BackoffLimitExceeded', 'too often')), 'Failed: too often'],
    ['claim, bound', of('PersistentVolumeClaim', { phase: 'Bound' }), 'Current'],
    ['claim, pending', of('PersistentVolumeClaim', { phase: 'Pending' }), 'InProgress: the claim is Pending'],
    ['claim, unseen', of('PersistentVolumeClaim'), 'InProgress: the claim is not yet seen'],
  ])('%s', (_, actual, expected) => {
    expect(actual).toBe(expected);
  });
});
