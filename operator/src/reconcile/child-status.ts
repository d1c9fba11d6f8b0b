import type { Condition, KubeObject } from '../../../constructs/core/kube-object';

/** How far a child has come. Source: kstatus (sigs.k8s.io/cli-utils), which kubectl wait and Flux follow too. */
export type ChildState =
  { readonly state: 'Current' } | { readonly state: 'InProgress' | 'Terminating' | 'Failed'; readonly message: string };

interface WithStatus {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly phase?: string;
  };
}

type Rule = (object: WithStatus) => ChildState;

const CURRENT: ChildState = Object.freeze({ state: 'Current' });

function inProgress(message: string): ChildState {
  return { state: 'InProgress', message };
}

const rules: Readonly<Record<string, Rule>> = {
  Deployment: deployment,
  StatefulSet: statefulSet,
  DaemonSet: daemonSet,
  Job: job,
  PersistentVolumeClaim: ({ status }) =>
    status?.phase === 'Bound' ? CURRENT : inProgress(`the claim is ${status?.phase ?? 'not yet seen'}`),
};

/** The state of a child, from what stands on the server. */
export function childState(child: KubeObject): ChildState {
  if (child.metadata.deletionTimestamp !== undefined) return { state: 'Terminating', message: 'it is being deleted' };
  const object = child as WithStatus;
  const generation = child.metadata.generation;
  const observed = object.status?.observedGeneration;
  if (generation !== undefined && observed !== undefined && observed < generation) {
    return inProgress(`its controller has seen generation ${String(observed)} of ${String(generation)}`);
  }
  return (rules[child.kind] ?? CURRENT_RULE)(object);
}

const CURRENT_RULE: Rule = () => CURRENT;

function condition(object: WithStatus, type: string): Condition | undefined {
  return object.status?.conditions?.find((candidate) => candidate.type === type);
}

function deployment(object: WithStatus): ChildState {
  const failure = condition(object, 'ReplicaFailure');
  if (failure?.status === 'True') return inProgress(failure.message);
  const progressing = condition(object, 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') return { state: 'Failed', message: progressing.message };
  // Its ReplicaSet was refused (`ReplicaSetCreateError`): the server's words say why.
  if (progressing?.status === 'False') return inProgress(progressing.message);
  const wanted = object.spec?.replicas ?? 1;
  const { status } = object;
  if (status?.observedGeneration === undefined) return inProgress('its controller has not seen it yet');
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, readyReplicas = 0 } = status;
  if (updatedReplicas < wanted) return inProgress(`${counted(updatedReplicas, wanted)} updated`);
  if (replicas > wanted) return inProgress(`${String(replicas - wanted)} surplus replicas still stand`);
  if (readyReplicas < wanted) return inProgress(`${counted(readyReplicas, wanted)} ready`);
  if (availableReplicas < wanted) return inProgress(`${counted(availableReplicas, wanted)} available`);
  return CURRENT;
}

function statefulSet(object: WithStatus): ChildState {
  const wanted = object.spec?.replicas ?? 1;
  const { status } = object;
  if (status?.observedGeneration === undefined) return inProgress('its controller has not seen it yet');
  const { updatedReplicas = 0, readyReplicas = 0 } = status;
  if (readyReplicas < wanted) return inProgress(`${counted(readyReplicas, wanted)} ready`);
  return updatedReplicas < wanted ? inProgress(`${counted(updatedReplicas, wanted)} updated`) : CURRENT;
}

function daemonSet({ status }: WithStatus): ChildState {
  if (status?.observedGeneration === undefined) return inProgress('its controller has not seen it yet');
  const { desiredNumberScheduled: wanted = 0, updatedNumberScheduled = 0, numberAvailable = 0 } = status;
  if (updatedNumberScheduled < wanted) return inProgress(`${counted(updatedNumberScheduled, wanted)} updated`);
  return numberAvailable < wanted ? inProgress(`${counted(numberAvailable, wanted)} available`) : CURRENT;
}

/** A Job that has started is current; only its failure says something is wrong. */
function job(object: WithStatus): ChildState {
  const failed = condition(object, 'Failed');
  if (failed?.status === 'True') return { state: 'Failed', message: failed.message };
  return object.status === undefined ? inProgress('its controller has not seen it yet') : CURRENT;
}

function counted(have: number, want: number): string {
  return `${String(have)} of ${String(want)} replicas`;
}
