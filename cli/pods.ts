import { setTimeout as delay } from 'node:timers/promises';
import path from 'node:path';
import type { KubeObject } from '../constructs/kube/kube-object';
import { owned } from '../constructs/kube/resource-type';
import { DEFAULT_NAMESPACE } from '../constructs/platform/platform-props';
import { serverImage, type ControlPlane } from '../local';
import type { ApiClient } from '../operator/client/api-client';
import { writeLocalImage } from './build';
import { CliError } from './errors';
import { RestMapper } from './objects';

const name = 'kindred-local-images';

/** A field manager of its own, so that the policy belongs to neither the platform nor the user. */
const PODS_FIELD_MANAGER = 'kindred-local-pods';

/**
 * Prepares a control plane whose node runs containers: the operator's image is made of this machine's Node.js and imported, and the
 * images of all other pods are replaced.
 */
export async function preparePods(plane: ControlPlane, client: ApiClient, signal: AbortSignal): Promise<void> {
  const archive = path.join(plane.dataDir, 'operator.tar');
  await writeLocalImage(archive);
  signal.throwIfAborted();
  await plane.importImage(archive);
  const types = new RestMapper(client);
  for (const object of podPolicy()) {
    await client.apply(await types.resourceTypeOf(object), object, { fieldManager: PODS_FIELD_MANAGER, signal });
  }
}

const availableTimeoutMs = 120_000;

interface DeploymentLike extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly availableReplicas?: number;
    readonly updatedReplicas?: number;
  };
}

/**
 * Waits until all pods of a Deployment are ready.
 *
 * @returns how many there are
 * @throws CliError when that takes longer than two minutes
 */
export async function waitForDeployment(
  client: ApiClient,
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<number> {
  const deadline = Date.now() + availableTimeoutMs;
  for (;;) {
    const deployment: DeploymentLike | undefined = await client.get(owned.Deployment, ref, { signal });
    const { spec, status, metadata } = deployment ?? { spec: undefined, status: undefined, metadata: undefined };
    const wanted = spec?.replicas ?? 1;
    const isCurrent = status?.observedGeneration === metadata?.generation;
    if (isCurrent && status?.availableReplicas === wanted && status.updatedReplicas === wanted) return wanted;
    if (Date.now() > deadline) {
      throw new CliError(
        `${status?.availableReplicas ?? 0} of ${wanted} pods of the Deployment ${ref.name} are ready after ` +
          `${availableTimeoutMs / 1000} s. Run it again with --installer=apply and look at: kubectl -n ${ref.namespace} describe pods`,
      );
    }
    await delay(200, undefined, { signal });
  }
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
function podPolicy(): readonly KubeObject[] {
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: {
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [DEFAULT_NAMESPACE, 'kube-system'] },
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
