import { ADOPT_ANNOTATION, OWNER_UID_ANNOTATION } from '../../../constructs/kube/envelope';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, OwnerReference } from '../../../constructs/kube/kube-object';
import { groupOf, type ResourceType } from '../../../constructs/kube/resource-type';

/**
 * What an object under a child's name is to an owner:
 * - `ours`: the owner may write it;
 * - `predecessor`: it belongs to a former object of the owner's name and goes with it;
 * - `foreign`: it is somebody else's and is left as it is.
 */
export type Claim = 'ours' | 'predecessor' | 'foreign';

/** Judges an object that stands under the name of one of the owner's children. */
export function claimOf(live: KubeObject, owner: KubeObject): Claim {
  const controller = controllerOf(live);
  if (controller !== undefined) {
    if (controller.uid === owner.metadata.uid) return 'ours';
    const sameKind = controller.kind === owner.kind && groupOf(controller) === groupOf(owner);
    return sameKind && controller.name === owner.metadata.name ? 'predecessor' : 'foreign';
  }
  if (live.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid) return 'ours';
  return mayBeTakenOver(live) ? 'ours' : 'foreign';
}

/** Judges an object that stands under the name of a child which the objects of a kind share. */
export function sharedClaim(kind: AnyKind, live: KubeObject): Claim {
  if (controllerOf(live) !== undefined) return 'foreign';
  return holdersOf(kind, live).length > 0 || mayBeTakenOver(live) ? 'ours' : 'foreign';
}

/** The owner references to objects of the kind that stand in a shared child. */
export function holdersOf(kind: AnyKind, live: KubeObject): readonly OwnerReference[] {
  const group = `${kind.group}/`;
  return (live.metadata.ownerReferences ?? []).filter(
    (reference) => reference.kind === kind.kind && reference.apiVersion.startsWith(group),
  );
}

/** Whoever may edit the object has agreed. An annotation of whoever wants to have it would say nothing of that: they may not be allowed to touch it. */
function mayBeTakenOver({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ADOPT_ANNOTATION] === 'true';
}

function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/**
 * The words in which a foreign object is refused.
 *
 * @param owners the objects whose child it was to be; where one of them bears the annotation `kindred.dev/adopt`, what would be needed is said
 */
export function refusal(type: ResourceType, live: KubeObject, kind: AnyKind, owners: readonly KubeObject[]): string {
  const { name } = live.metadata;
  const refused = `Resource "${name}" already exists and is not managed by ${kind.kind}`;
  const asking = owners.find(({ metadata }) => metadata.annotations?.[ADOPT_ANNOTATION] !== undefined);
  if (asking === undefined) return refused;
  const vain = `${refused}. The annotation ${ADOPT_ANNOTATION} on ${kind.kind} "${asking.metadata.name}" does nothing`;
  const controller = controllerOf(live);
  if (controller !== undefined)
    return `${vain}, and ${type.kind} "${name}" is controlled by ${controller.kind} "${controller.name}", which nobody takes it from`;
  return `${vain}: it must stand on the ${type.kind}. Whoever may edit that can agree with: ${consentCommand(type, live)}`;
}

function consentCommand(type: ResourceType, { metadata: { name, namespace } }: KubeObject): string {
  const group = groupOf(type);
  const resource = group === '' ? type.plural : `${type.plural}.${group}`;
  const where = namespace === undefined ? '' : ` --namespace=${namespace}`;
  return `kubectl annotate ${resource} ${name}${where} ${ADOPT_ANNOTATION}=true`;
}
