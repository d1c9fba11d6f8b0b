import { setTimeout as delay } from 'node:timers/promises';
import path from 'node:path';
import type { KubeObject } from '../constructs/kube/kube-object';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import { serverImage, type ControlPlane } from '../local';
import type { ApiClient } from '../operator/client/api-client';
import { childState } from '../operator/status/child-status';
import { RestMapper } from '../operator/client/rest-mapper';
import { writeLocalImage } from './build';
import { CliError } from './errors';
import type { LocalPlatform } from './local-platform';
import { resourceTypeOf } from './objects';

const name = 'kindred-local-images';
const podType: ResourceType<PodLike> = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' };

/** A field manager of its own, so that the policy belongs to neither the platform nor the user. */
const PODS_FIELD_MANAGER = 'kindred-local-pods';

/**
 * Prepares a control plane whose node runs containers: the operators' images are made of this machine's Node.js and imported, and the
 * images of all other pods are replaced.
 */
export async function preparePods(
  { project, operators, namespace }: LocalPlatform,
  { plane, client, signal }: { readonly plane: ControlPlane; readonly client: ApiClient; readonly signal: AbortSignal },
): Promise<void> {
  for (const { operator } of operators) {
    const archive = path.join(plane.dataDir, `${operator.name}.tar`);
    await writeLocalImage(archive, project, operator);
    signal.throwIfAborted();
    await plane.importImage(archive);
  }
  const types = new RestMapper(client);
  for (const object of podPolicy(namespace)) {
    await client.apply(await resourceTypeOf(types, object), object, { fieldManager: PODS_FIELD_MANAGER, signal });
  }
}

/** How long the pods of a Deployment may take, in milliseconds. */
const availableTimeoutMs = 120_000;

interface DeploymentLike extends KubeObject {
  readonly spec?: { readonly replicas?: number };
}

/**
 * Waits until a Deployment is rolled out.
 *
 * @returns the number of its pods
 * @throws CliError when it takes too long, with the reasons that its Deployment and its pods give
 */
export async function waitForDeployment(
  client: ApiClient,
  ref: { readonly namespace: string; readonly name: string },
  { signal, timeoutMs = availableTimeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs?: number },
): Promise<number> {
  const started = Date.now();
  for (;;) {
    const deployment: DeploymentLike | undefined = await client.get(owned.Deployment, ref, { signal });
    const state = deployment === undefined ? undefined : childState(deployment, Date.now());
    if (state?.state === 'Current') return deployment?.spec?.replicas ?? 1;
    if (state?.state === 'Failed' || Date.now() - started >= timeoutMs) {
      const { items } = await client.list(podType, {
        ...{ namespace: ref.namespace, labelSelector: `app.kubernetes.io/instance=${ref.name}`, signal },
      });
      throw new CliError(
        [
          `the Deployment ${ref.namespace}/${ref.name} is not rolled out after ${Math.round((Date.now() - started) / 1000)} s: ${state?.message ?? 'it does not exist'}`,
          ...items.flatMap(podProblems),
        ].join('\n'),
      );
    }
    await delay(200, undefined, { signal });
  }
}

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
}

interface PodLike extends KubeObject {
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly state?: ContainerState;
      readonly lastState?: ContainerState;
    }[];
  };
}

/** Why a pod is not ready, a line for each reason; the last lines of the log of a container that ended are one. */
function podProblems(pod: PodLike): readonly string[] {
  const state = childState(pod, Date.now());
  if (state.state === 'Current') return [];
  const containers = (pod.status?.containerStatuses ?? []).flatMap(({ name: container, state: now, lastState }) => {
    const { waiting } = now ?? {};
    const ended = now?.terminated ?? lastState?.terminated;
    return [
      ...(waiting === undefined
        ? []
        : [`${container}: ${[waiting.reason, waiting.message].filter(Boolean).join(': ')}`]),
      ...(ended === undefined
        ? []
        : [
            `${container} ended with ${ended.exitCode ?? '?'} (${ended.reason ?? 'no reason'}): ${ended.message?.trimEnd() ?? ''}`,
          ]),
    ];
  });
  return [
    `  Pod ${pod.metadata.name}: ${state.message}`,
    ...containers.map((line) => `    ${line.replaceAll('\n', '\n      ')}`),
  ];
}

/** What a container asks for instead of what its image would need. */
const resources = `{
  'requests': {'cpu': '10m', 'memory': '16Mi'},
  'limits': {'cpu': '500m', 'memory': '128Mi'}
}`;

const ports = `has(c.ports) && size(c.ports) > 0 ? c.ports.map(p, string(p.containerPort)) : ['8080']`;

/** Patches one field of every container of a list, in CEL: there is no other way to know a container's index. */
function patchAll(list: string, field: string, value: string): string {
  const indexes = Array.from({ length: 20 }, (_, index) => index).join(', ');
  const containers = `object.spec.${list}`;
  return `(has(${containers}) ? [${indexes}].filter(i, i < size(${containers})).map(i, JSONPatch{
  op: 'add',
  path: '/spec/${list}/' + string(i) + '/${field}',
  value: [${containers}[i]].map(c, ${value})[0]
}) : [])`;
}

/** The patches of a pod. A container that prepares something ends at once; every other one serves its ports. */
const patches = ['containers', 'initContainers'].flatMap((list) => [
  patchAll(list, 'image', `'${serverImage}'`),
  patchAll(list, 'imagePullPolicy', `'IfNotPresent'`),
  patchAll(list, 'command', list === 'containers' ? `['/pod', 'serve'] + (${ports})` : `['/pod', 'nothing']`),
  patchAll(list, 'args', `[]`),
  patchAll(list, 'resources', resources),
]);

/**
 * Makes every pod outside of the operator's namespace run a small HTTP server instead of its own images, which
 * a node without a network cannot pull. It asks for little, so that any number fits on this machine. Kinds,
 * operator and Deployments know nothing of this.
 */
/** @param namespace - of the operators, whose images are real */
function podPolicy(namespace: string): readonly KubeObject[] {
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace, 'kube-system'] },
          ],
        },
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: patches.join(' +\n') } }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name },
  };
  return [policy, binding];
}
