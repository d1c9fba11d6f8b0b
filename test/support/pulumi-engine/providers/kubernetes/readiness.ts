import type { KubeObject } from '../../../../../constructs/kube/kube-object';
import type { Readiness } from './wait';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
}

interface Workload {
  readonly metadata: { readonly generation?: number };
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: object;
    readonly type?: string;
    readonly clusterIP?: string;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly readyReplicas?: number;
    readonly succeeded?: number;
    readonly conditions?: readonly Condition[];
    readonly loadBalancer?: { readonly ingress?: readonly unknown[] };
  };
}

/**
 * What to wait for after a create or an update: what `pulumi.com/waitFor` says, else what the real provider knows of the kind; nothing at
 * all with `pulumi.com/skipAwait`. (provider/pkg/await, provider/pkg/metadata)
 *
 * @throws Error when the annotation cannot be read
 */
export function readinessOf(object: KubeObject): Readiness | undefined {
  const annotations = object.metadata.annotations ?? {};
  if (annotations['pulumi.com/skipAwait'] === 'true') return undefined;
  const asked = annotations['pulumi.com/waitFor'];
  return asked === undefined ? builtIn[`${object.apiVersion}/${object.kind}`] : all(expressions(asked).map(satisfier));
}

function expressions(annotation: string): string[] {
  const trimmed = annotation.trim();
  return trimmed.startsWith('[') ? (JSON.parse(trimmed) as string[]) : [trimmed];
}

function satisfier(expression: string): Readiness {
  const condition = /^condition=([^=]+)(?:=(.*))?$/.exec(expression);
  if (condition !== null) {
    const [, type, status = 'True'] = condition;
    return (object) => {
      const found = statusOf(object)?.conditions?.find((one) => one.type === type);
      if (found?.status.toLowerCase() === status.toLowerCase()) return true;
      return `condition ${type!} is ${found?.status ?? 'absent'}${found?.message === undefined ? '' : `: ${found.message}`}`;
    };
  }
  const path = /^jsonpath=\{\.([^}]+)\}(?:=(.*))?$/.exec(expression);
  if (path === null)
    throw new Error(`expected a "jsonpath=" or "condition=" expression in pulumi.com/waitFor, got "${expression}"`);
  const [, keys, wanted] = path;
  return (object) => {
    const value = keys!
      .split('.')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (value !== undefined && (wanted === undefined || text === wanted)) return true;
    return `${keys!} is ${value === undefined ? 'absent' : text}`;
  };
}

function all(parts: readonly Readiness[]): Readiness {
  return (object) => parts.map((part) => part(object)).find((verdict) => verdict !== true) ?? true;
}

function statusOf(object: KubeObject | undefined): Workload['status'] {
  return (object as Workload | undefined)?.status;
}

const rolledOut: Readiness = (object) => {
  const { metadata, spec, status = {} } = object as unknown as Workload;
  const wanted = spec?.replicas ?? 1;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return 'its controller has not seen it';
  const failure = status.conditions?.find((one) => one.type === 'ReplicaFailure' && one.status === 'True');
  const [updated, available] = [status.updatedReplicas ?? 0, status.availableReplicas ?? 0];
  if (updated >= wanted && available >= wanted && (status.replicas ?? 0) === updated) return true;
  return `${available} of ${wanted} pods are available${failure === undefined ? '' : `: ${failure.message ?? ''}`}`;
};

const balanced: Readiness = (object) =>
  (statusOf(object)?.loadBalancer?.ingress?.length ?? 0) > 0
    ? true
    : 'it has no address: status.loadBalancer.ingress is empty';

const builtIn: Readonly<Record<string, Readiness>> = {
  'apps/v1/Deployment': rolledOut,
  'apps/v1/StatefulSet': rolledOut,
  'batch/v1/Job': (object) =>
    statusOf(object)?.conditions?.some((one) => one.type === 'Complete' && one.status === 'True') === true
      ? true
      : 'the job is not complete',
  'networking.k8s.io/v1/Ingress': balanced,
  'v1/Service': (object) => ((object as Workload | undefined)?.spec?.type === 'LoadBalancer' ? balanced(object) : true),
  'v1/Pod': (object) =>
    statusOf(object)?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true
      ? true
      : 'the pod is not ready',
};
