import { FIELD_MANAGER, SEED_FIELD_MANAGER } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ActiveSeed, RenderedChild } from '../../../constructs/kind/render';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type { CacheView } from '../cache/cache-view';
import type { CacheEntry } from '../cache/projection';
import type { ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { Claim } from './claim';
import { nested, valueAt } from './field-path';
import { managedFieldsOf, owns, updateMovedToApply } from './managed-fields';
import { refOf, uidOf } from './object-ref';

/** What is known of the child that is to be applied. */
export interface ApplyAhead {
  readonly client: ApiClient;
  readonly cache: CacheView;
  readonly child: RenderedChild;
  /** Judges an object that stands under the child's name already. */
  readonly claim: (live: KubeObject) => Claim;
}

/**
 * Brings the ownership of a child's fields to where an apply says all that we want: what a POST created counts as applied, so that what is left
 * out goes, and seeded fields are their second manager's, so that they stay.
 *
 * Guarantees: an object that has changed since it was cached is judged anew.
 *
 * @param cached - what was found to be ours and to differ
 * @param applied - what is going to be applied
 * @returns the object as it stands then
 * @throws ApiError `Conflict` when the object is not what the cache says any more; TransportError
 */
export async function prepareApply(ahead: ApplyAhead, cached: CacheEntry, applied: KubeObject): Promise<KubeObject> {
  const { seeds } = ahead.child;
  if (!cached.facts.createdByUpdate && seeds.length === 0) return cached.object;
  let standing = (await countAsApplied(ahead, cached)) ?? (await moveToApply(ahead, cached.object, applied));
  for (const seed of seeds) standing = await handOver(ahead, standing, seed);
  return standing;
}

/** The UIDs of the owners that do not stand in the live object. */
export function missingOwners(live: KubeObject, applied: KubeObject): readonly string[] {
  const wanted = applied.metadata.ownerReferences ?? [];
  const standing = live.metadata.ownerReferences ?? [];
  return wanted.map(({ uid }) => uid).filter((uid) => !standing.some((owner) => owner.uid === uid));
}

/**
 * Counts what a POST created as applied, so that this apply can drop fields: the usual case, in which nothing has to be read for it.
 *
 * @returns the object as it stands then; undefined when it is not the usual case, or the object has changed or gone since it was cached
 */
async function countAsApplied(ahead: ApplyAhead, { object, facts }: CacheEntry): Promise<KubeObject | undefined> {
  if (facts.updateAt === undefined) return undefined;
  try {
    return await patchManagedFields(ahead, object, `/${String(facts.updateAt)}/operation`, 'Apply');
  } catch (error) {
    if (error instanceof ApiError && (error.reason === 'Conflict' || error.code === 404)) return undefined;
    throw error;
  }
}

/**
 * Counts what a POST created as applied, whatever else the manager has applied already.
 *
 * @returns the object as it stands then
 */
async function moveToApply(ahead: ApplyAhead, cached: KubeObject, applied: KubeObject): Promise<KubeObject> {
  const { client, child } = ahead;
  const current = await client.get(child.type, refOf(cached));
  if (current?.metadata.uid !== uidOf(cached)) throw conflict(child.type, cached, 'was deleted or replaced');
  if (!isStillOurs(ahead, cached, current, applied)) throw conflict(child.type, cached, 'changed hands');
  const moved = updateMovedToApply(managedFieldsOf(current), FIELD_MANAGER);
  return moved === undefined ? current : patchManagedFields(ahead, current, '', moved);
}

/**
 * What was judged is the cached object; from here on it is the version of this one that guards the writes. The garbage collector may have taken an
 * owner out of it that goes with `--cascade=orphan`, or somebody else have taken it over.
 */
function isStillOurs({ claim }: ApplyAhead, cached: KubeObject, current: KubeObject, applied: KubeObject): boolean {
  if (claim(current) !== 'ours' || current.metadata.deletionTimestamp !== undefined) return false;
  const missing = missingOwners(cached, applied);
  return missingOwners(current, applied).every((uid) => missing.includes(uid));
}

/** Replaces what stands at a path below managedFields, if the object is still the one given. */
function patchManagedFields(
  { client, cache, child }: ApplyAhead,
  standing: KubeObject,
  path: string,
  value: unknown,
): Promise<KubeObject> {
  // Not `test`: its failure is a 422 like that of a child that the server finds invalid, where a replaced version is a Conflict.
  const patch = [
    { op: 'replace', path: '/metadata/uid', value: standing.metadata.uid },
    { op: 'replace', path: '/metadata/resourceVersion', value: standing.metadata.resourceVersion },
    { op: 'replace', path: `/metadata/managedFields${path}`, value },
  ];
  const ref = refOf(standing);
  return cache.trackWrite(ref, () =>
    client.patch(child.type, ref, patch, { type: 'json', fieldManager: FIELD_MANAGER }),
  );
}

/**
 * Gives a field that we own to a second manager before our apply omits it: an omitted field that nobody else owns falls back to
 * its default, which for `replicas` is 1. A value that the seed refuses is replaced, whoever owns it: the other writer would leave it so.
 * The resourceVersion is the precondition: the other writer may write at any moment.
 *
 * @returns the object as it stands then
 */
async function handOver(ahead: ApplyAhead, current: KubeObject, seed: ActiveSeed): Promise<KubeObject> {
  const { type, manifest } = ahead.child;
  const live = valueAt(current, seed.path);
  const isKept = live !== undefined && seed.keep(live);
  if (isKept && !owns(managedFieldsOf(current), FIELD_MANAGER, seed.path)) return current;
  const value = isKept ? live : valueAt(manifest, seed.path);
  const { name, namespace, uid, resourceVersion } = current.metadata;
  const body: KubeObject = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    ...nested(seed.path, value),
    metadata: { name, namespace, uid, resourceVersion },
  };
  return ahead.cache.trackWrite(refOf(body), () =>
    ahead.client.apply(type, body, { fieldManager: SEED_FIELD_MANAGER }),
  );
}

function conflict(type: ResourceType, object: KubeObject, happened: string): ApiError {
  const { name } = object.metadata;
  const message = `${type.plural} "${name}" ${happened} while it was being written`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `GET ${type.plural} ${name}`);
}
