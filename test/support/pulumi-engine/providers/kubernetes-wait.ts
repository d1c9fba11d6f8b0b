import type { KubeObject } from '../../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../../constructs/kube/resource-type';
import type { ApiClient, ObjectRef } from '../../../../operator';

/** Whether an object is as it should be: `true`, or what is missing. Undefined object: it is not there. */
type Readiness = (object: KubeObject | undefined) => true | string;

/** Where and how long to wait. */
export interface WaitOptions {
  readonly client: ApiClient;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Waits on a watch until an object is ready.
 *
 * @returns the object as it then is, and what is still missing if the time ran out
 */
export async function waitFor(
  options: WaitOptions,
  ready: Readiness,
): Promise<{ readonly object: KubeObject | undefined; readonly missing?: string }> {
  const { client, type, ref, timeoutMs, signal } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any([signal, deadline]);
  const over = (): boolean => stop.aborted;
  let object = await client.get(type, ref);
  let verdict = ready(object);
  while (verdict !== true && !over()) {
    const page = await client.list(type, listed(ref));
    object = page.items.find((item) => item.metadata.name === ref.name);
    verdict = ready(object);
    if (verdict === true) break;
    try {
      const events = client.watch(type, {
        ...listed(ref),
        resourceVersion: page.resourceVersion,
        timeoutSeconds: Math.ceil(timeoutMs / 1000),
        signal: stop,
        idleTimeoutMs: timeoutMs + 1000,
      });
      for await (const event of events) {
        if (event.type === 'BOOKMARK') continue;
        object = event.type === 'DELETED' ? undefined : event.object;
        verdict = ready(object);
        if (verdict === true) break;
      }
    } catch (error) {
      // The deadline ends the watch with an error of its own.
      if (!over()) throw error;
    }
  }
  signal.throwIfAborted();
  return { object, ...(verdict === true ? {} : { missing: verdict }) };
}

function listed(ref: ObjectRef): { fieldSelector: string; namespace?: string } {
  return {
    fieldSelector: `metadata.name=${ref.name}`,
    ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }),
  };
}

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
  return asked === undefined
    ? builtIn[`${object.apiVersion}/${object.kind}`]
    : all(expressions(asked).map(parseExpression));
}

function expressions(annotation: string): string[] {
  const trimmed = annotation.trim();
  return trimmed.startsWith('[') ? (JSON.parse(trimmed) as string[]) : [trimmed];
}

function parseExpression(expression: string): Readiness {
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

const hasLoadBalancer: Readiness = (object) =>
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
  'networking.k8s.io/v1/Ingress': hasLoadBalancer,
  'v1/Service': (object) =>
    (object as Workload | undefined)?.spec?.type === 'LoadBalancer' ? hasLoadBalancer(object) : true,
  'v1/Pod': (object) =>
    statusOf(object)?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true
      ? true
      : 'the pod is not ready',
};
