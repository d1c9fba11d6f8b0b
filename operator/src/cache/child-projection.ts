import { OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../../constructs/kube/envelope';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { groupOf } from '../../../constructs/kube/resource-type';
import { metadataOnly, projectMetadata, type CacheEntry, type Projection } from './projection';
import type { RenderedShapes } from './rendered-shapes';

/**
 * What is stored of the objects of a child type: of those that belong to one of the kinds what they render, as far as that is known, of
 * all others, which are watched only because their names may be in the way, the metadata.
 */
export function childProjection(kinds: readonly AnyKind[], shapes: RenderedShapes): Projection {
  const owners = new Set(kinds.map(({ group, kind }) => `${group}/${kind}`));
  const belongs = ({ metadata }: KubeObject): boolean =>
    metadata.annotations?.[OWNER_UID_ANNOTATION] !== undefined ||
    metadata.annotations?.[SHARED_KEY_ANNOTATION] !== undefined ||
    metadata.ownerReferences?.some((owner) => owners.has(`${groupOf(owner)}/${owner.kind}`)) === true;
  const own = (object: KubeObject): CacheEntry => {
    const { object: kept, facts } = projectMetadata(object);
    return { object: shapes.prune(kept), facts };
  };
  return (object) => (belongs(object) ? own(object) : metadataOnly(object));
}
