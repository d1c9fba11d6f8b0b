import type { KubeObject } from '../../constructs/kube/kube-object';
import { groupOf } from '../../constructs/kube/resource-type';

/** The state of a child. Source: kstatus (sigs.k8s.io/cli-utils), which kubectl wait and Flux follow too. */
export type ChildState =
  | { readonly state: 'Current' }
  | { readonly state: 'Terminating' | 'Failed'; readonly message: string }
  | {
      readonly state: 'InProgress';
      readonly message: string;
      /**
       * When to check again, in milliseconds, if the state changes by time alone. @default no: only an event
       * changes it
       */
      readonly againMs?: number;
    };

/**
 * The state of a child, from its live object. What applies to every type comes first: its deletion, a
 * generation that its controller has not seen, `Reconciling` and `Stalled`. Then the type's own rule decides,
 * or `Ready` if there is no rule; without `Ready` the child is current.
 *
 * @param now the current time, in milliseconds since 1970
 */
export function childState(child: KubeObject, now: number): ChildState {
  const object: WithStatus = {
    metadata: child.metadata,
    spec: fieldsOf(child['spec']),
    status: fieldsOf(child['status']),
    conditions: conditionsOf(fieldsOf(child['status'])['conditions']),
  };
  return common(object) ?? (RULES[`${groupOf(child)}/${child.kind}`] ?? byReady)(object, now);
}

/**
 * The part of an object that is evaluated. Objects of custom types may have anything there, so no shape is
 * assumed.
 */
interface WithStatus {
  readonly metadata: KubeObject['metadata'];
  readonly spec: Fields;
  readonly status: Fields;
  readonly conditions: readonly StatusCondition[];
}

type Fields = Readonly<Record<string, unknown>>;

interface StatusCondition {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
}

/** @param now the current time, in milliseconds since 1970 */
type Rule = (object: WithStatus, now: number) => ChildState;

const CURRENT: ChildState = Object.freeze({ state: 'Current' });
const UNSEEN = 'its controller has not seen it yet';
/** How long the scheduler may take before a pod counts as unschedulable, in milliseconds. Source: kstatus. */
const SCHEDULE_WINDOW_MS = 15_000;
/** A Deployment with this deadline has none. Source: the Deployment controller. */
const NO_DEADLINE = 2 ** 31 - 1;

/** The rules for single types, by group and kind; a core type has an empty group. Source: kstatus, but for the Job (docs/adr/0019). */
const RULES: Readonly<Record<string, Rule>> = {
  '/ConfigMap': () => CURRENT,
  '/Secret': () => CURRENT,
  '/Service': service,
  '/Pod': pod,
  '/PersistentVolumeClaim': claim,
  'apps/Deployment': deployment,
  'apps/StatefulSet': statefulSet,
  'apps/DaemonSet': daemonSet,
  'apps/ReplicaSet': replicaSet,
  'extensions/Deployment': deployment,
  'extensions/DaemonSet': daemonSet,
  'extensions/ReplicaSet': replicaSet,
  'batch/CronJob': () => CURRENT,
  'batch/Job': job,
  'policy/PodDisruptionBudget': () => CURRENT,
  'apiextensions.k8s.io/CustomResourceDefinition': customResourceDefinition,
};

function common({ metadata, status, conditions }: WithStatus): ChildState | undefined {
  if (metadata.deletionTimestamp !== undefined) return { state: 'Terminating', message: 'it is being deleted' };
  const { generation } = metadata;
  const observed = status['observedGeneration'];
  if (generation !== undefined && typeof observed === 'number' && observed !== generation)
    return inProgress(`its controller has seen generation ${String(observed)} of ${String(generation)}`);
  for (const condition of conditions) {
    if (condition.status !== 'True') continue;
    if (condition.type === 'Reconciling') return inProgress(wordsOf(condition));
    if (condition.type === 'Stalled') return failed(wordsOf(condition));
  }
  return undefined;
}

function byReady({ conditions }: WithStatus): ChildState {
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' || ready?.status === 'Unknown' ? inProgress(wordsOf(ready)) : CURRENT;
}

function deployment(object: WithStatus): ChildState {
  const { spec, status } = object;
  const failure = conditionOf(object, 'ReplicaFailure');
  if (failure?.status === 'True') return inProgress(wordsOf(failure));
  const progressing = conditionOf(object, 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') return failed(wordsOf(progressing));
  // Its ReplicaSet was rejected (`ReplicaSetCreateError`): the server's message says why.
  if (progressing?.status === 'False') return inProgress(wordsOf(progressing));
  if (status['observedGeneration'] === undefined) return inProgress(UNSEEN);
  const wanted = integer(spec, 'replicas', 1);
  const lacking =
    pausedRollout(object, wanted) ??
    tooFew(object, wanted, { updatedReplicas: 'updated', replicas: 'created' }) ??
    surplus(object, wanted) ??
    tooFew(object, wanted, { readyReplicas: 'ready' }) ??
    tooFew(object, integer(status, 'updatedReplicas'), { availableReplicas: 'available' });
  if (lacking !== undefined) return lacking;
  // Without a deadline, the controller reports no progress.
  const hasDeadline = integer(spec, 'progressDeadlineSeconds', NO_DEADLINE) !== NO_DEADLINE;
  const isRolledOut = progressing?.status === 'True' && progressing.reason === 'NewReplicaSetAvailable';
  if (hasDeadline && !isRolledOut) return inProgress(wordsOf(progressing, 'its ReplicaSet is not available yet'));
  const available = conditionOf(object, 'Available');
  return available?.status === 'True' ? CURRENT : inProgress(wordsOf(available, 'it is not available yet'));
}

/**
 * A Deployment whose rollout `kubectl rollout pause` has stopped: its pods are replaced no further, or it has
 * changed nothing yet and reports no progress. In progress, as it is for kstatus.
 */
function pausedRollout({ metadata, spec, status, conditions }: WithStatus, wanted: number): ChildState | undefined {
  if (spec['paused'] !== true) return undefined;
  const updated = integer(status, 'updatedReplicas');
  const isPausedHere = conditions.some(({ type, reason }) => type === 'Progressing' && reason === 'DeploymentPaused');
  if (updated >= wanted && integer(status, 'replicas') <= wanted && !isPausedHere) return undefined;
  const { name, namespace } = metadata;
  const where = namespace === undefined ? '' : ` --namespace=${namespace}`;
  return inProgress(
    `its rollout is paused, with ${counted(updated, wanted, 'replicas')} updated; to go on: ` +
      `kubectl rollout resume deployment/${name}${where}`,
  );
}

function statefulSet(object: WithStatus): ChildState {
  const { spec, status } = object;
  const strategy = fieldsOf(spec['updateStrategy']);
  // Its pods are updated only when somebody deletes them.
  if (strategy['type'] === 'OnDelete') return CURRENT;
  if (status['observedGeneration'] === undefined) return inProgress(UNSEEN);
  const wanted = integer(spec, 'replicas', 1);
  const lacking = tooFew(object, wanted, { replicas: 'created', readyReplicas: 'ready' }) ?? surplus(object, wanted);
  if (lacking !== undefined) return lacking;
  const partition = integer(fieldsOf(strategy['rollingUpdate']), 'partition', -1);
  if (partition >= 0) return tooFew(object, wanted - partition, { updatedReplicas: 'updated' }) ?? CURRENT;
  const { currentRevision = '', updateRevision = '' } = status;
  if (currentRevision !== updateRevision)
    return tooFew(object, wanted, { updatedReplicas: 'updated' }) ?? inProgress('its update is not complete yet');
  return tooFew(object, wanted, { currentReplicas: 'current' }) ?? CURRENT;
}

function daemonSet(object: WithStatus): ChildState {
  const { metadata, status } = object;
  if (metadata.generation === undefined || status['observedGeneration'] === undefined) return inProgress(UNSEEN);
  const wanted = integer(status, 'desiredNumberScheduled', -1);
  if (wanted < 0) return inProgress('its controller has not said how many pods it is to have');
  const needed = {
    currentNumberScheduled: 'scheduled',
    updatedNumberScheduled: 'updated',
    numberAvailable: 'available',
    numberReady: 'ready',
  };
  return tooFew(object, wanted, needed) ?? CURRENT;
}

function replicaSet(object: WithStatus): ChildState {
  const failure = conditionOf(object, 'ReplicaFailure');
  if (failure?.status === 'True') return inProgress(wordsOf(failure));
  const wanted = integer(object.spec, 'replicas', 1);
  const needed = { fullyLabeledReplicas: 'labelled', availableReplicas: 'available', readyReplicas: 'ready' };
  return tooFew(object, wanted, needed) ?? surplus(object, wanted) ?? CURRENT;
}

/** A Job is current once it is complete: what depends on its result may begin only then. */
function job(object: WithStatus): ChildState {
  const { spec, status } = object;
  const failure = conditionOf(object, 'Failed');
  if (failure?.status === 'True') return failed(wordsOf(failure));
  if (conditionOf(object, 'Complete')?.status === 'True') return CURRENT;
  const suspended = conditionOf(object, 'Suspended');
  if (suspended?.status === 'True') return inProgress(wordsOf(suspended));
  if (status['startTime'] === undefined) return inProgress('it has not been started yet');
  const completions = integer(spec, 'completions', integer(spec, 'parallelism', 1));
  return inProgress(`${counted(integer(status, 'succeeded'), completions, 'pods')} succeeded`);
}

function pod(object: WithStatus, now: number): ChildState {
  const { status, metadata } = object;
  switch (status['phase']) {
    case 'Succeeded':
    case 'Failed':
      return CURRENT;
    case 'Running': {
      const ready = conditionOf(object, 'Ready');
      if (ready?.status === 'True') return CURRENT;
      const crashing = crashLooping(status['containerStatuses']);
      if (crashing.length > 0) return failed(`these containers crash again and again: ${crashing.join(', ')}`);
      return inProgress(wordsOf(ready, 'it is not ready yet'));
    }
    case 'Pending': {
      const scheduled = conditionOf(object, 'PodScheduled');
      if (scheduled?.status !== 'False' || scheduled.reason !== 'Unschedulable') return inProgress('it is pending');
      const leftMs = Date.parse(metadata.creationTimestamp ?? '') + SCHEDULE_WINDOW_MS - now;
      return leftMs > 0 ? { ...inProgress(wordsOf(scheduled)), againMs: leftMs } : failed(wordsOf(scheduled));
    }
    default:
      return inProgress('its phase is not known');
  }
}

function crashLooping(statuses: unknown): readonly string[] {
  return (Array.isArray(statuses) ? statuses : [])
    .map(fieldsOf)
    .filter(({ state }) => fieldsOf(fieldsOf(state)['waiting'])['reason'] === 'CrashLoopBackOff')
    .map(({ name }) => String(name));
}

function claim({ status }: WithStatus): ChildState {
  const { phase } = status;
  return phase === 'Bound' ? CURRENT : inProgress(`the claim is ${typeof phase === 'string' ? phase : 'not yet seen'}`);
}

function service({ spec }: WithStatus): ChildState {
  const isBalanced = spec['type'] === 'LoadBalancer';
  return isBalanced && (spec['clusterIP'] ?? '') === '' ? inProgress('it has no cluster IP yet') : CURRENT;
}

function customResourceDefinition(object: WithStatus): ChildState {
  const names = conditionOf(object, 'NamesAccepted');
  if (names?.status === 'False') return failed(wordsOf(names));
  const established = conditionOf(object, 'Established');
  if (established?.status === 'True') return CURRENT;
  if (established?.status === 'False' && established.reason !== 'Installing') return failed(wordsOf(established));
  return inProgress(wordsOf(established, 'it is not established yet'));
}

/** The first of some counts in the status that is below what is wanted. */
function tooFew(
  { status }: WithStatus,
  wanted: number,
  counts: Readonly<Record<string, string>>,
): ChildState | undefined {
  const short = Object.entries(counts).find(([field]) => integer(status, field) < wanted);
  if (short === undefined) return undefined;
  const [field, what] = short;
  return inProgress(`${counted(integer(status, field), wanted, 'replicas')} ${what}`);
}

function surplus({ status }: WithStatus, wanted: number): ChildState | undefined {
  const more = integer(status, 'replicas') - wanted;
  return more > 0 ? inProgress(`${String(more)} surplus replicas still stand`) : undefined;
}

function counted(have: number, want: number, what: string): string {
  return `${String(have)} of ${String(want)} ${what}`;
}

function inProgress(message: string): Extract<ChildState, { state: 'InProgress' }> {
  return { state: 'InProgress', message };
}

function failed(message: string): ChildState {
  return { state: 'Failed', message };
}

function conditionOf({ conditions }: WithStatus, type: string): StatusCondition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/**
 * The text of a condition: its message, or its reason without a message, or its type and status without both.
 */
function wordsOf(condition: StatusCondition | undefined, otherwise?: string): string {
  const { type, status, reason, message } = condition ?? {};
  const said = [message, reason].find((text) => typeof text === 'string' && text !== '') as string | undefined;
  return said ?? otherwise ?? `its condition ${String(type)} is ${String(status)}`;
}

function conditionsOf(value: unknown): readonly StatusCondition[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function integer(fields: Fields, name: string, otherwise = 0): number {
  const value = fields[name];
  return typeof value === 'number' ? value : otherwise;
}
