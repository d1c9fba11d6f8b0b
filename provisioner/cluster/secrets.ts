/** The Secrets with clusters' kubeconfigs, and which Secrets a Cluster or Kubeconfig may not read. */

import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { Kubeconfig } from '../../constructs/kinds/kubeconfig';
import { MANAGED_BY, MANAGED_BY_LABEL, OWNER_UID_ANNOTATION, ownerReference } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { PlanError } from '../../operator/effects/plan-runner';
import { isOfAnother, isState } from '../../operator/effects/state-secret';

/** Key of the kubeconfig in its Secret. */
const KEY = 'kubeconfig';

/** The name of the Secret with a cluster's kubeconfig. */
export function kubeconfigName({ metadata }: KubeObject): string {
  return `${metadata.name}-kubeconfig`;
}

/**
 * Writes a cluster's kubeconfig to the Secret `<name>-kubeconfig`, in the namespace of its state.
 *
 * @returns a reference to it
 * @throws PlanError for a Secret of that name with another owner; ApiError, TransportError
 */
export async function putKubeconfig(
  client: ApiClient,
  owner: KubeObject,
  { namespace, text, retain }: { readonly namespace: string; readonly text: string; readonly retain: boolean },
): Promise<ObjectKeyRef> {
  const ref = { namespace, name: kubeconfigName(owner) };
  const value = Buffer.from(text, 'utf8').toString('base64');
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...ref,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY },
      annotations: { [OWNER_UID_ANNOTATION]: owner.metadata.uid ?? '' },
      ...(retain ? {} : { ownerReferences: [ownerReference(owner)] }),
    },
    type: 'Opaque',
    data: { [KEY]: value },
  };
  const standing = await client.get(owned.Secret, ref);
  if (standing === undefined) {
    try {
      await client.create(owned.Secret, body, { fieldManager: 'kindred-state' });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      return putKubeconfig(client, owner, { namespace, text, retain });
    }
    return { ...ref, key: KEY };
  }
  if (standing.metadata.annotations?.[OWNER_UID_ANNOTATION] !== owner.metadata.uid) {
    throw new PlanError(
      'ErrResourceExists',
      `Secret ${ref.namespace}/${ref.name} already exists and is not that of ${owner.kind} ${owner.metadata.name}, ` +
        'whose kubeconfig belongs there. Rename or delete it.',
      { isTerminal: true },
    );
  }
  const { data } = standing as { readonly data?: Readonly<Record<string, string>> };
  const kept = (standing.metadata.ownerReferences ?? []).length === 0;
  if (data?.[KEY] !== value || kept !== retain) {
    const { uid, resourceVersion } = standing.metadata;
    const precise = { ...body, metadata: { ...body.metadata, uid, resourceVersion } };
    await client.update(owned.Secret, precise, { fieldManager: 'kindred-state' });
  }
  return { ...ref, key: KEY };
}

/**
 * Why a Cluster or Kubeconfig may not read a Secret that it names: the Secret is the state or the kubeconfig
 * of another object, and gives access to that object's machines. A Cluster could otherwise have it copied to
 * its own machines, for example as the password of a registry.
 *
 * Such a Secret is recognized by the label and the annotation that the provisioner sets, not by its name.
 * Secrets of other controllers, including Kindred's own children, may be read by any object that names them.
 * A Kubeconfig sends a kubeconfig only to the server in it, so it may read that of the Cluster that created
 * it, and one that a deleted Cluster has left behind.
 *
 * @returns undefined when it may read the Secret
 */
export function secretRefusal(secret: KubeObject, by: KubeObject): string | undefined {
  if (!isOfAnother(secret, by)) return undefined;
  const { annotations, ownerReferences = [] } = secret.metadata;
  const owner = annotations?.[OWNER_UID_ANNOTATION] ?? '';
  const holdsState = isState(secret);
  if (!holdsState && by.kind === Kubeconfig.kind && (ownerReferences.length === 0 || isMadeBy(by, owner)))
    return undefined;
  const [reference] = ownerReferences;
  const whose = reference === undefined ? 'another object' : `${reference.kind} ${reference.name}`;
  return `it is the ${holdsState ? 'state' : 'kubeconfig'} of ${whose}, and only that may use it`;
}

/** Whether an object is a child of the one with this UID, also after it was orphaned. */
function isMadeBy({ metadata: { ownerReferences = [], annotations } }: KubeObject, uid: string): boolean {
  return annotations?.[OWNER_UID_ANNOTATION] === uid || ownerReferences.some((reference) => reference.uid === uid);
}
