import {
  HASH_ANNOTATION,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNER_UID_ANNOTATION,
  STATE_FINALIZER,
} from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { Kubeconfig } from '../../../constructs/kinds/kubeconfig';

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
