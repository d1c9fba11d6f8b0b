import { enclose, FIELD_MANAGER, HASH_ANNOTATION, SEED_FIELD_MANAGER } from '../../../constructs/core/envelope';
import type { Envelope } from '../../../constructs/core/envelope';
import type { KubeObject } from '../../../constructs/core/kube-object';
import type { ActiveSeed, RenderedChild } from '../../../constructs/core/render';
import type { ResourceType } from '../../../constructs/core/resource-type';
import type { CacheView } from '../cache/cache-view';
import type { CacheEntry } from '../cache/projection';
import type { RenderedShapes } from '../cache/rendered-shapes';
import { factsOf } from '../cache/projection';
import type { ApiClient, ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import { childHash } from './child-hash';
import type { Claim } from './claim';
import { nested, valueAt, without } from './field-path';
import type { Contests } from './contests';
import { lastManager, managedFieldsOf, owns, updateMovedToApply } from './managed-fields';
import { replaceLists } from './replace-lists';
import { asStored, firstDifference } from './standing';

/** What became of one child. */
export type ChildOutcome =
  | { readonly result: 'unchanged' | 'created' | 'applied'; readonly live: KubeObject }
  /** Its name is taken by an object that is not ours. */
  | { readonly result: 'refused'; readonly live: KubeObject }
  /** It cannot be written yet; an event will tell when. */
  | { readonly result: 'waiting'; readonly message: string }
  /** Somebody else changes it back again and again; it is left alone for `waitMs` milliseconds. */
  | { readonly result: 'contested'; readonly path: string; readonly by: string; readonly waitMs: number };

/** What `writeChild` needs to know. */
export interface ChildWrite {
  readonly client: ApiClient;
  readonly cache: CacheView;
  readonly child: RenderedChild;
  readonly envelope: Omit<Envelope, 'hash'>;
  /** Judges an object that stands under the child's name already. */
  readonly claim: (live: KubeObject) => Claim;
  /** Whether owner references stand in the live object that must not; they are dropped by an apply. */
  readonly strayOwners?: (live: KubeObject) => boolean;
  /**
   * Called before an owner is entered in an object that stands without it. What it throws prevents the write. @default every owner lives
   */
  readonly beforeOwning?: () => Promise<void>;
  /** Slows down corrections that do not last. */
  readonly contests: Contests;
  /** Told what was rendered, so that the cache keeps no more of the child. */
  readonly shapes: RenderedShapes;
  /** Told why an existing child is written: the first path that differs. */
  readonly onDrift?: (path: string) => void;
}

/**
 * Brings one child to what was rendered: creates it by POST (server-side apply would merge into a stranger's object of that name),
 * applies it when it differs, and writes nothing when it does not. Where the server's own answer differed from what was sent, the
 * answer counts from then on: its normalisation is nobody's change.
 *
 * Guarantees: a write to an existing object carries its UID and version, so that it can bring back neither a deleted object nor an old spec.
 *
 * @throws ApiError when the API server refuses the child; `Conflict` when the cache was behind
 * @throws TransportError when no answer came
 */
export async function writeChild(write: ChildWrite): Promise<ChildOutcome> {
  const { child, cache } = write;
  const applied = child.seeds.reduce((manifest, seed) => without(manifest, seed.path), child.manifest);
  const envelope = { ...write.envelope, hash: childHash(applied) };
  const ref = refOf(child.manifest);
  const stands = (): boolean => hashOf(cache.get(ref)?.object) === envelope.hash;
  if (write.shapes.remember(envelope.hash, applied) && stands()) cache.reproject(ref);
  try {
    return await createOrWriteOver(write, enclose(child.manifest, envelope), enclose(applied, envelope));
  } finally {
    // Refused, or not yet written: there may never be a child of this hash.
    if (!stands()) write.shapes.forget(envelope.hash);
  }
}

async function createOrWriteOver(write: ChildWrite, body: KubeObject, applied: KubeObject): Promise<ChildOutcome> {
  const { child, cache } = write;
  const cached = cache.get(refOf(body));
  if (cached !== undefined) return writeOver(write, cached, applied);
  try {
    const live = await cache.trackWrite(refOf(body), () =>
      write.client.create(child.type, body, { fieldManager: FIELD_MANAGER }),
    );
    learnStored(write, body, live);
    return { result: 'created', live };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.hasCause('NamespaceTerminating')) return { result: 'waiting', message: 'the namespace is being deleted' };
    if (error.reason !== 'AlreadyExists') throw error;
  }
  const live = await write.client.get(child.type, refOf(body));
  if (live === undefined) return { result: 'waiting', message: 'an object of its name is just going away' };
  return writeOver(write, { object: live, facts: factsOf(live) }, applied);
}

async function writeOver(write: ChildWrite, cached: CacheEntry, applied: KubeObject): Promise<ChildOutcome> {
  const { object: live } = cached;
  const claim = write.claim(live);
  if (claim === 'foreign') return { result: 'refused', live };
  if (claim === 'predecessor') {
    return { result: 'waiting', message: 'the child of a deleted object of the same name still stands' };
  }
  if (live.metadata.deletionTimestamp !== undefined) return { result: 'waiting', message: 'it is being deleted' };
  const difference =
    differenceOf(write, applied, live) ?? (write.strayOwners?.(live) ? 'metadata.ownerReferences' : undefined);
  if (difference === undefined) return { result: 'unchanged', live };
  const contest = isCorrection(write, live, applied) ? contestOf(live, applied) : undefined;
  const waitMs = contest === undefined ? 0 : write.contests.delay(contest);
  if (waitMs > 0) return { result: 'contested', path: difference, by: await lastWriter(write, live), waitMs };
  if (!isOwned(live, applied)) await write.beforeOwning?.();
  write.onDrift?.(difference);
  const result = await apply(write, cached, applied);
  if (hashOf(live) !== hashOf(applied)) write.shapes.forget(hashOf(live));
  if (contest !== undefined) write.contests.corrected(contest);
  write.contests.applied(uidOf(live), hashOf(applied) ?? '');
  learnStored(write, applied, result);
  return { result: 'applied', live: result };
}

/** The first path that stands neither as applied nor as the server is known to store it. */
function differenceOf({ shapes }: ChildWrite, applied: KubeObject, live: KubeObject): string | undefined {
  const difference = firstDifference(applied, live);
  if (difference === undefined) return undefined;
  const stored = shapes.storedForm(hashOf(applied) ?? '');
  return stored === undefined ? difference : firstDifference({ ...stored, metadata: applied.metadata }, live);
}

/** The server's answer shows how it stores what it was sent. */
function learnStored({ shapes }: ChildWrite, sent: KubeObject, answer: KubeObject): void {
  // Metadata are stored as they are sent, and are no function of the hash: owners come and go.
  const body = { ...sent, metadata: undefined };
  const same = firstDifference(body, answer) === undefined;
  shapes.rememberStored(hashOf(sent) ?? '', same ? undefined : (asStored(body, shapes.prune(answer)) as KubeObject));
}

/** Other owners of a shared child are other contents, though its hash is the same: their coming and going is no contest. */
function contestOf(live: KubeObject, applied: KubeObject): string {
  const owners = applied.metadata.ownerReferences?.map(({ uid }) => uid) ?? [];
  return [uidOf(live), ...owners].join(' ');
}

/** Whether all owners stand in the live object. */
function isOwned(live: KubeObject, applied: KubeObject): boolean {
  const owners = new Set(live.metadata.ownerReferences?.map(({ uid }) => uid));
  return applied.metadata.ownerReferences?.every(({ uid }) => owners.has(uid)) === true;
}

/** The same was rendered when it was last applied, so somebody else changed it: perhaps together with the hash that says so. */
function isCorrection({ contests }: ChildWrite, live: KubeObject, applied: KubeObject): boolean {
  const hash = hashOf(applied);
  return hashOf(live) === hash || contests.lastApplied(uidOf(live)) === hash;
}

function hashOf(child: KubeObject | undefined): string | undefined {
  return child?.metadata.annotations?.[HASH_ANNOTATION];
}

/** The field manager that wrote an object last, apart from us. */
async function lastWriter({ client, child }: ChildWrite, live: KubeObject): Promise<string> {
  const current = await client.get(child.type, refOf(live));
  return (current && lastManager(managedFieldsOf(current), FIELD_MANAGER)) ?? 'an unknown field manager';
}

async function apply(write: ChildWrite, cached: CacheEntry, applied: KubeObject): Promise<KubeObject> {
  const { client, cache, child } = write;
  let standing = cached.object;
  if (cached.facts.createdByUpdate || child.seeds.length > 0) {
    standing = (await countAsApplied(write, cached)) ?? (await moveToApply(write, cached.object));
    for (const seed of child.seeds) standing = await handOver(write, standing, seed);
  }
  const ref = refOf(applied);
  const body = upon(standing, applied);
  return cache.trackWrite(ref, () =>
    client.apply(child.type, body, { fieldManager: FIELD_MANAGER }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== 'Invalid') throw error;
      return replaceLists(client, child.type, ref, body, error);
    }),
  );
}

/**
 * Counts what a POST created as applied, so that this apply can drop fields: the usual case, in which nothing has to be read for it.
 *
 * @returns the object as it stands then; undefined when it is not the usual case, or the object has changed or gone since it was cached
 */
async function countAsApplied(write: ChildWrite, { object, facts }: CacheEntry): Promise<KubeObject | undefined> {
  if (facts.updateAt === undefined) return undefined;
  try {
    return await patchManagedFields(write, object, `/${String(facts.updateAt)}/operation`, 'Apply');
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
async function moveToApply(write: ChildWrite, cached: KubeObject): Promise<KubeObject> {
  const { client, child } = write;
  const current = await client.get(child.type, refOf(cached));
  if (current?.metadata.uid !== uidOf(cached)) throw gone(child.type, cached);
  const moved = updateMovedToApply(managedFieldsOf(current), FIELD_MANAGER);
  return moved === undefined ? current : patchManagedFields(write, current, '', moved);
}

/** Replaces what stands at a path below managedFields, if the object is still the one given. */
function patchManagedFields(
  { client, cache, child }: ChildWrite,
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
 * its default, which for `replicas` is 1. The resourceVersion is the precondition: the other writer may write at any moment.
 *
 * @returns the object as it stands then
 */
async function handOver(write: ChildWrite, current: KubeObject, seed: ActiveSeed): Promise<KubeObject> {
  if (!owns(managedFieldsOf(current), FIELD_MANAGER, seed.path)) return current;
  const { type, manifest } = write.child;
  const live = valueAt(current, seed.path);
  const value = live !== undefined && seed.keep(live) ? live : valueAt(manifest, seed.path);
  const { name, namespace, uid, resourceVersion } = current.metadata;
  const body: KubeObject = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    ...nested(seed.path, value),
    metadata: { name, namespace, uid, resourceVersion },
  };
  return write.cache.trackWrite(refOf(body), () =>
    write.client.apply(type, body, { fieldManager: SEED_FIELD_MANAGER }),
  );
}

/**
 * An apply with its preconditions: the object that it was rendered for, as it stood then. Without the UID it would bring back what was
 * deleted; without the version, one that was long on its way would bring back what the spec said before.
 */
function upon(standing: KubeObject, applied: KubeObject): KubeObject {
  const { resourceVersion } = standing.metadata;
  return { ...applied, metadata: { ...applied.metadata, uid: uidOf(standing), resourceVersion } };
}

function uidOf(live: KubeObject): string {
  const { uid } = live.metadata;
  if (uid === undefined) throw new TypeError(`${live.kind} ${live.metadata.name} came from the server without a uid`);
  return uid;
}

/** The object's address in the API. */
export function refOf(object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

function gone(type: ResourceType, object: KubeObject): ApiError {
  const { name } = object.metadata;
  const message = `${type.plural} "${name}" was deleted or replaced while it was being written`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `GET ${type.plural} ${name}`);
}
