/**
 * Whose an object is, whether an owner still exists, and which annotations of an owner change what is done to
 * it.
 */

import type { AnyKind } from '../../constructs/kind/kind';
import {
  ADOPT_ANNOTATION,
  FORCE_REMOVE_ANNOTATION,
  OWNER_UID_ANNOTATION,
  PAUSED_ANNOTATION,
} from '../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../constructs/kube/kube-object';
import { groupOf, type ResourceType } from '../../constructs/kube/resource-type';
import { kubectlTarget, refOf, type ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import { readPagedList } from '../informer/initial-list';

/**
 * What an object that has a child's name is to an owner:
 * - `ours`: the owner may write it;
 * - `predecessor`: it belongs to an earlier object of the owner's name and is deleted with that one;
 * - `foreign`: it belongs to somebody else and is left as it is.
 */
export type Claim = 'ours' | 'predecessor' | 'foreign';

/** Classifies a live object that has the name of one of the owner's children. */
export function claimOf(live: KubeObject, owner: KubeObject): Claim {
  const controller = controllerOf(live);
  if (controller !== undefined) {
    if (controller.uid === owner.metadata.uid) return 'ours';
    const sameKind = controller.kind === owner.kind && groupOf(controller) === groupOf(owner);
    return sameKind && controller.name === owner.metadata.name ? 'predecessor' : 'foreign';
  }
  if (live.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid) return 'ours';
  return hasAdoptAnnotation(live) ? 'ours' : 'foreign';
}

/** Classifies a live object that has the name of a child which objects of a kind share. */
export function sharedClaim(kind: AnyKind, live: KubeObject): Claim {
  if (controllerOf(live) !== undefined) return 'foreign';
  return ownerReferencesOf(kind, live).length > 0 || hasAdoptAnnotation(live) ? 'ours' : 'foreign';
}

/** The owner references of a shared child that point to objects of the kind. */
export function ownerReferencesOf(kind: AnyKind, live: KubeObject): readonly OwnerReference[] {
  const group = `${kind.group}/`;
  return (live.metadata.ownerReferences ?? []).filter(
    (reference) => reference.kind === kind.kind && reference.apiVersion.startsWith(group),
  );
}

/**
 * Whether somebody who may edit the object has agreed to its adoption. An annotation on the owner would not
 * prove that: its author may not be allowed to change the object.
 */
function hasAdoptAnnotation({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ADOPT_ANNOTATION] === 'true';
}

function controllerOf({ metadata }: KubeObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/**
 * The message that reports a foreign object under a child's name.
 *
 * @param owners the objects that render the child; if one of them has the annotation `kindred.dev/adopt`, the
 * message says what is needed instead
 */
export function refusalMessage(
  type: ResourceType,
  live: KubeObject,
  kind: AnyKind,
  owners: readonly KubeObject[],
): string {
  const { name } = live.metadata;
  const refused = `Resource "${name}" already exists and is not managed by ${kind.kind}`;
  const asking = owners.find(({ metadata }) => metadata.annotations?.[ADOPT_ANNOTATION] !== undefined);
  if (asking === undefined) return refused;
  const vain = `${refused}. The annotation ${ADOPT_ANNOTATION} on ${kind.kind} "${asking.metadata.name}" does nothing`;
  const controller = controllerOf(live);
  if (controller !== undefined)
    return `${vain}, and ${type.kind} "${name}" is controlled by ${controller.kind} "${controller.name}", which nobody takes it from`;
  return `${vain}: it must stand on the ${type.kind}. Whoever may edit that can agree with: kubectl annotate ${kubectlTarget(type, refOf(live))} ${ADOPT_ANNOTATION}=true`;
}

/** Reads objects of a kind from the server. */
export interface LiveReader {
  readonly kind: AnyKind;
  readonly client: Pick<ApiClient, 'list'>;
}

/** Anything with an object's name and namespace. */
interface Named {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'>;
}

/**
 * Up to this many objects are read one by one; more of them by a list of their namespace, which may have
 * thousands of others.
 */
const MAX_SINGLE_READS = 4;
const PAGE_SIZE = 500;

/**
 * The metadata of the object that the server has now under a cached object's name. It is read by a list of
 * one: the operator's permissions let it list and watch the objects of its kinds, not get one.
 *
 * @throws ApiError, TransportError
 */
export async function getLiveMetadata(
  { kind, client }: LiveReader,
  { metadata }: Named,
): Promise<KubeObject | undefined> {
  const { name } = metadata;
  const { items } = await client.list(kind.type, {
    ...inNamespaceOf(metadata),
    fieldSelector: `metadata.name=${name}`,
    metadataOnly: true,
  });
  return items.find((item) => item.metadata.name === name);
}

/**
 * As {@link getLiveMetadata}, for several objects of one namespace.
 *
 * @returns what the server has under each name, in their order
 * @throws ApiError, TransportError
 */
export async function getAllLiveMetadata(
  lookout: LiveReader,
  objects: readonly Named[],
): Promise<readonly (KubeObject | undefined)[]> {
  const [first] = objects;
  if (first === undefined || objects.length <= MAX_SINGLE_READS)
    return Promise.all(objects.map((object) => getLiveMetadata(lookout, object)));
  const live = new Map<string, KubeObject>();
  await readPagedList(
    lookout.client,
    lookout.kind.type,
    { ...inNamespaceOf(first.metadata), limit: PAGE_SIZE, metadataOnly: true },
    (object) => live.set(object.metadata.name, object),
    () => live.clear(),
  );
  return objects.map(({ metadata }) => live.get(metadata.name));
}

function inNamespaceOf({ namespace }: Named['metadata']): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}

/**
 * Compares a cached object with what the server has under its name.
 *
 * @throws ApiError `Conflict` when the object was deleted or replaced, or is being deleted, and the cache
 * does not show that
 */
export function verifyOwner({ plural }: AnyKind, cached: KubeObject, live: KubeObject | undefined): void {
  const { name, uid, deletionTimestamp } = cached.metadata;
  const gone = live === undefined || live.metadata.uid !== uid;
  if (!gone && (live.metadata.deletionTimestamp === undefined || deletionTimestamp !== undefined)) return;
  throw staleCacheError(plural, name, gone ? 'was deleted, or replaced' : 'is being deleted');
}

/** The error for a cache that is behind: the server's view of the object is newer. */
export function staleCacheError(plural: string, name: string, what: string): ApiError {
  const message = `${plural} "${name}" ${what}, and no event has told of it yet`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `LIST ${plural} ${name}`);
}

/** Whether an annotation pauses the reconciling of the object. */
export function isPaused({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[PAUSED_ANNOTATION] === 'true';
}

/** Whether an annotation lets the object be deleted without undoing its effects. */
export function isForceRemoved({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[FORCE_REMOVE_ANNOTATION] === 'true';
}

/** The garbage collector's finalizer for `--cascade=orphan`. Source: `metav1.FinalizerOrphanDependents`. */
const ORPHAN = 'orphan';

/**
 * Whether the object is being deleted with `--cascade=orphan` and the garbage collector has not orphaned its
 * children yet.
 */
export function hasOrphanFinalizer({ metadata: { finalizers = [] } }: KubeObject): boolean {
  return finalizers.includes(ORPHAN);
}
