import { ADOPT_ANNOTATION, OWNER_UID_ANNOTATION } from '../../../constructs/core/envelope';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { groupOf } from '../../../constructs/core/resource-type';

/**
 * What an object under a child's name is to an owner:
 * - `ours`: the owner may write it;
 * - `predecessor`: it belongs to a former object of the owner's name and goes with it;
 * - `foreign`: it is somebody else's and is left as it is.
 */
export type Claim = 'ours' | 'predecessor' | 'foreign';

/** Judges an object that stands under the name of one of the owner's children. */
export function claimOf(live: KubeObject, owner: KubeObject): Claim {
  const controller = live.metadata.ownerReferences?.find((reference) => reference.controller === true);
  if (controller !== undefined) {
    if (controller.uid === owner.metadata.uid) return 'ours';
    const sameKind = controller.kind === owner.kind && groupOf(controller) === groupOf(owner);
    return sameKind && controller.name === owner.metadata.name ? 'predecessor' : 'foreign';
  }
  if (live.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid) return 'ours';
  return owner.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'ours' : 'foreign';
}

/** The words in which a foreign object is refused. */
export function refusal(live: KubeObject, ownerKind: string): string {
  return `Resource "${live.metadata.name}" already exists and is not managed by ${ownerKind}`;
}
