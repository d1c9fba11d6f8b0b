import { MANAGED_BY, MANAGED_BY_LABEL, OWNER_UID_ANNOTATION, ownerReference } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import type { ApiClient } from '../../client/api-client';
import { ApiError } from '../../client/errors';
import { PlanError } from '../../effects/plan-runner';

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
