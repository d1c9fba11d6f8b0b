import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { Kubeconfig } from '../../constructs/kinds/kubeconfig';
import {
  HASH_ANNOTATION,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNER_UID_ANNOTATION,
  STATE_FINALIZER,
  ownerReference,
} from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { PlanError } from '../../operator/effects/plan-runner';

/** Key of the kubeconfig in its Secret. */
const KEY = 'kubeconfig';

/** The name of the Secret with a cluster's kubeconfig. */
export function kubeconfigName({ metadata }: KubeObject): string {
  return `${metadata.name}-kubeconfig`;
}

/**
 * Keeps a cluster's kubeconfig in the Secret `<name>-kubeconfig`, beside its state.
 *
 * @returns where it stands
 * @throws PlanError for a Secret of that name that is somebody else's; ApiError, TransportError
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
      { hopeless: true },
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

/** Key of the records in a Secret with state: see `SecretStore`. */
const RECORDS = 'effects.json';

/**
 * Why a Cluster or Kubeconfig may not have a Secret that it names: it is the state or the kubeconfig of another one, whose machines it would reach.
 * A Cluster could else have it copied to its own machines, as a registry's password say.
 *
 * Known by the label and the annotation that the provisioner gives it, not by its name; what other controllers make, Kindred's own for kinds that
 * render Secrets among them, is anybody's who may name it. A Kubeconfig only shows a kubeconfig to the server in it, so it may have that of the Cluster
 * that made it, and one whose Cluster is gone and has left it.
 *
 * @returns undefined when it may
 */
export function secretRefusal(secret: KubeObject, by: KubeObject): string | undefined {
  const { labels, annotations, ownerReferences = [], finalizers = [] } = secret.metadata;
  const owner = annotations?.[OWNER_UID_ANNOTATION];
  const isOurs = labels?.[MANAGED_BY_LABEL] === MANAGED_BY && owner !== undefined;
  // Children have a hash.
  if (!isOurs || annotations?.[HASH_ANNOTATION] !== undefined || owner === by.metadata.uid) return undefined;
  const { data = {} } = secret as { readonly data?: Readonly<Record<string, string>> };
  const isState = Object.hasOwn(data, RECORDS) || finalizers.includes(STATE_FINALIZER);
  if (!isState && by.kind === Kubeconfig.kind && (ownerReferences.length === 0 || isMadeBy(by, owner)))
    return undefined;
  const [reference] = ownerReferences;
  const whose = reference === undefined ? 'another object' : `${reference.kind} ${reference.name}`;
  return `it is the ${isState ? 'state' : 'kubeconfig'} of ${whose}, and only that may use it`;
}

/** Whether an object is a child of the one with this UID; after that was orphaned, too. */
function isMadeBy({ metadata: { ownerReferences = [], annotations } }: KubeObject, uid: string): boolean {
  return annotations?.[OWNER_UID_ANNOTATION] === uid || ownerReferences.some((reference) => reference.uid === uid);
}
