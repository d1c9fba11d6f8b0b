import type { AnyKind } from '../../constructs/kind/kind';
import {
  ADOPT_ANNOTATION,
  FORCE_REMOVE_ANNOTATION,
  OWNER_UID_ANNOTATION,
  PAUSED_ANNOTATION,
} from '../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../constructs/kube/kube-object';
import { groupOf, type ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import { readPagedList } from '../informer/initial-list';

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
  return hasAdoptAnnotation(live) ? 'ours' : 'foreign';
}

/** Judges an object that stands under the name of a child which the objects of a kind share. */
export function sharedClaim(kind: AnyKind, live: KubeObject): Claim {
  if (controllerOf(live) !== undefined) return 'foreign';
  return ownerReferencesOf(kind, live).length > 0 || hasAdoptAnnotation(live) ? 'ours' : 'foreign';
}

/** The owner references to objects of the kind that stand in a shared child. */
export function ownerReferencesOf(kind: AnyKind, live: KubeObject): readonly OwnerReference[] {
  const group = `${kind.group}/`;
  return (live.metadata.ownerReferences ?? []).filter(
    (reference) => reference.kind === kind.kind && reference.apiVersion.startsWith(group),
  );
}

/** Whoever may edit the object has agreed. An annotation of whoever wants to have it would say nothing of that: they may not be allowed to touch it. */
function hasAdoptAnnotation({ metadata }: KubeObject): boolean {
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
  return `${vain}: it must stand on the ${type.kind}. Whoever may edit that can agree with: ${adoptCommand(type, live)}`;
}

function adoptCommand(type: ResourceType, { metadata: { name, namespace } }: KubeObject): string {
  const group = groupOf(type);
  const resource = group === '' ? type.plural : `${type.plural}.${group}`;
  const where = namespace === undefined ? '' : ` --namespace=${namespace}`;
  return `kubectl annotate ${resource} ${name}${where} ${ADOPT_ANNOTATION}=true`;
}

/** Where the objects of a kind are looked at. */
export interface LiveReader {
  readonly kind: AnyKind;
  readonly client: Pick<ApiClient, 'list'>;
}

/** Whatever has an object's name. */
interface Named {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'>;
}

/** So many objects are looked at one by one; more of them by a list of their namespace, which may hold thousands of others. */
const MAX_SINGLE_READS = 4;
const PAGE_SIZE = 500;

/**
 * The object that the server has under a cached object's name now, its metadata only. By a list of one: the operator's permissions let it list
 * and watch the objects of its kinds, not get one.
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
 * @throws ApiError `Conflict` when the object is gone, replaced or being deleted and the cache has not heard of it
 */
export function verifyOwner({ plural }: AnyKind, cached: KubeObject, live: KubeObject | undefined): void {
  const { name, uid, deletionTimestamp } = cached.metadata;
  const gone = live === undefined || live.metadata.uid !== uid;
  if (!gone && (live.metadata.deletionTimestamp === undefined || deletionTimestamp !== undefined)) return;
  throw staleCacheError(plural, name, gone ? 'was deleted, or replaced' : 'is being deleted');
}

/** What is thrown when the server knows of an object what the cache does not. */
export function staleCacheError(plural: string, name: string, what: string): ApiError {
  const message = `${plural} "${name}" ${what}, and no event has told of it yet`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `LIST ${plural} ${name}`);
}

/** The garbage collector's finalizer of `--cascade=orphan`. Source: `metav1.FinalizerOrphanDependents`. */
const ORPHAN = 'orphan';

/** A person asks for nothing to be done. */
export function isPaused({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[PAUSED_ANNOTATION] === 'true';
}

/** A person lets the object go as it is. */
export function isForceRemoved({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[FORCE_REMOVE_ANNOTATION] === 'true';
}

/** It is deleted with `--cascade=orphan`, and the garbage collector has not done its part yet. */
export function hasOrphanFinalizer({ metadata: { finalizers = [] } }: KubeObject): boolean {
  return finalizers.includes(ORPHAN);
}
