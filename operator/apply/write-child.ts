import { isDeepStrictEqual } from 'node:util';
import {
  FIELD_MANAGER,
  SEED_FIELD_MANAGER,
  HASH_ANNOTATION,
  MANAGED_BY_LABEL,
  ANNOTATION_PREFIX,
  withEnvelope,
  type Envelope,
} from '../../constructs/kube/envelope';
import type { RenderedChild } from '../../constructs/kind/render';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { childKey, refOf, uidOf, type ApiClient, type ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import { changedFields } from '../informer/field-ownership';
import { stripManagedFields, type CacheEntry } from '../informer/projection';
import { ChildComparison, childHash, digestOf } from './diff';
import type { Contest, DriftBackoff } from './drift-backoff';
import {
  conflict,
  lastFieldManager,
  missingOwners,
  prepareApply,
  omitPath,
  returnedField,
  type ApplyContext,
} from './managed-fields';

/** The result of writing one child. */
export type ChildOutcome =
  | {
      readonly result: 'unchanged' | 'created' | 'applied';
      readonly live: KubeObject;
      /** Another writer reverts it again and again; at the moment it is as rendered. */
      readonly contest?: Contest;
    }
  /** An object that is not ours has its name. */
  | { readonly result: 'refused'; readonly live: KubeObject; readonly isUncached?: boolean }
  /**
   * It cannot be written yet; an event reports when it can. If the cache does not have the object in its way
   * (`isUncached`), perhaps no event does: the informer never sees the deletion of an object it did not have.
   */
  | { readonly result: 'waiting'; readonly message: string; readonly isUncached?: boolean }
  /** Another writer reverts it repeatedly; it is left alone for `waitMs` milliseconds. */
  | ({ readonly result: 'backingOff' } & Contest)
  /**
   * Another client deletes it repeatedly; it is created again `waitMs` milliseconds from now, `delayMs` after
   * the last time.
   */
  | { readonly result: 'deleted'; readonly waitMs: number; readonly delayMs: number }
  /**
   * It is rendered differently again and again, from the same object; it is written again `waitMs` milliseconds
   * from now, `delayMs` after the last time.
   */
  | { readonly result: 'unstable'; readonly path: string; readonly waitMs: number; readonly delayMs: number };

/** Options of `writeChild`. */
interface WriteChildOptions extends ApplyContext {
  readonly envelope: Omit<Envelope, 'hash'>;
  /** Whether the live object has owner references that it must not have; an apply drops them. */
  readonly hasStrayOwners?: (live: KubeObject) => boolean;
  /** Called before an owner reference is added to an existing object. If it throws, nothing is written. */
  readonly beforeAddingOwner: (live: KubeObject) => Promise<void>;
  /** Delays corrections that are reverted repeatedly. */
  readonly driftBackoff: DriftBackoff;
  /** The child's owner, for the drift backoff: the owner's UID, or one string for a shared key. */
  readonly ownerKey: string;
  /** A digest of what the child is rendered from. @default not known */
  readonly input?: string;
  /** If it exists, it is left as it is. @default false */
  readonly onlyCreate?: boolean;
  /** Called before an existing child is written, with the first path that differs. */
  readonly onDrift?: (path: string) => void;
}

/**
 * Brings one child to what was rendered: creates it by POST (server-side apply would merge into somebody
 * else's object of that name), applies it when it differs, and writes nothing when it does not. If the
 * server's response differs from what was sent, later comparisons use the response: the server's
 * normalisation is not another writer's change.
 *
 * Guarantees: a write to an existing object carries its UID and version, so that it can neither recreate a
 * deleted object nor restore an old spec.
 *
 * @throws ApiError when the API server rejects the child; `Conflict` when the cache was behind
 * @throws TransportError when no response came
 */
export async function writeChild(write: WriteChildOptions): Promise<ChildOutcome> {
  const { child, cache } = write;
  const applied = appliedManifest(child);
  const envelope = { ...write.envelope, hash: childHash(applied) };
  const ref = refOf(child.manifest);
  const cachedHash = (): string | undefined => hashOf(cache.get(ref)?.object);
  const before = cachedHash();
  const stands = (): boolean => cachedHash() === envelope.hash;
  // Before it is reduced: a dry run can be compared with the whole child only.
  const cached = cache.get(ref);
  if (write.projection.register(envelope.hash, applied) && stands())
    cache.reproject(ref, (entry) => write.projection.project(entry));
  try {
    const whole = withEnvelope(applied, envelope);
    if (cached !== undefined) return await updateExisting(write, cached, whole);
    return await create(write, withEnvelope(child.manifest, envelope), whole);
  } finally {
    // If the child was rejected, or is not written yet, a child of this hash may never exist.
    if (!stands()) write.projection.forget(envelope.hash);
    // Also when the first of two writes changed the child and the second one failed.
    if (before !== cachedHash()) write.projection.forget(before);
  }
}

/** What an apply of a child sends, apart from its envelope: the rendering without the seeded fields. */
export function appliedManifest({ manifest, seeds }: RenderedChild): KubeObject {
  return seeds.reduce((rest, seed) => omitPath(rest, seed.path), manifest);
}

async function create(write: WriteChildOptions, body: KubeObject, applied: KubeObject): Promise<ChildOutcome> {
  const { child, cache, driftBackoff } = write;
  const address = childKey(child.type, child.manifest);
  const again = driftBackoff.lastCreatedHash(write.ownerKey, address) === hashOf(body);
  const backoffKey = again ? backoffKeyOf(address, body) : undefined;
  const waitMs = backoffKey === undefined ? 0 : driftBackoff.remainingDelayMs(backoffKey);
  if (backoffKey !== undefined && waitMs > 0)
    return { result: 'deleted', waitMs, delayMs: driftBackoff.totalDelayMs(backoffKey) };
  try {
    const live = await cache.trackWrite(refOf(body), () =>
      write.client.create(child.type, body, { fieldManager: FIELD_MANAGER }),
    );
    if (backoffKey !== undefined) driftBackoff.recordCorrection(backoffKey);
    driftBackoff.recordCreate(write.ownerKey, address, hashOf(body) ?? '');
    registerStoredForm(write, applied, live);
    return requireCached(write, { result: 'created', live });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.hasCause('NamespaceTerminating')) return { result: 'waiting', message: 'the namespace is being deleted' };
    if (error.reason !== 'AlreadyExists') throw error;
    if (write.onlyCreate === true)
      return requireCached(write, { result: 'waiting', message: 'an object of its name exists' });
  }
  const live = await write.client.get(child.type, refOf(body));
  if (live === undefined)
    return requireCached(write, { result: 'waiting', message: 'an object of its name is just going away' });
  return requireCached(write, await updateExisting(write, write.projection.wholeEntryOf(live), applied));
}

/**
 * Returns the outcome only if the cache has an object under the child's name; otherwise marks it as uncached,
 * because the informer never sees the deletion of an object it did not have.
 */
function requireCached({ cache, child }: WriteChildOptions, outcome: ChildOutcome): ChildOutcome {
  if (cache.get(refOf(child.manifest)) !== undefined) return outcome;
  if (outcome.result === 'backingOff' || outcome.result === 'deleted' || outcome.result === 'unstable') return outcome;
  if (outcome.result === 'refused' || outcome.result === 'waiting') return { ...outcome, isUncached: true };
  return { result: 'waiting', message: 'it has been written, and no event has told of it yet', isUncached: true };
}

async function updateExisting(
  write: WriteChildOptions,
  cached: CacheEntry,
  applied: KubeObject,
): Promise<ChildOutcome> {
  const { object: live } = cached;
  const { driftBackoff } = write;
  const claim = write.claim(live);
  if (claim === 'foreign') return { result: 'refused', live };
  if (claim === 'predecessor') {
    return { result: 'waiting', message: 'the child of a deleted object of the same name still stands' };
  }
  if (live.metadata.deletionTimestamp !== undefined) return { result: 'waiting', message: 'it is being deleted' };
  const difference =
    (await findDrift(write, cached, applied)) ??
    returnedField(write, cached, applied) ??
    (write.hasStrayOwners?.(live) ? 'metadata.ownerReferences' : undefined);
  if (difference === undefined) return { result: 'unchanged', live, ...contestOf(write, live, applied) };
  const backoffKey = backoffKeyOf(uidOf(live), applied);
  const isCorrection = isDriftCorrection(write, live, applied);
  const waitMs = isCorrection ? driftBackoff.remainingDelayMs(backoffKey) : 0;
  const field = difference.startsWith(OWNERS) ? undefined : difference;
  const isContested =
    isCorrection && (waitMs > 0 || (field !== undefined && driftBackoff.isContestedNext(backoffKey, field)));
  // Before the apply, after which the other writer's name is gone from the managedFields.
  const by = isContested ? await getLastFieldManager(write, live, difference) : undefined;
  if (by !== undefined && waitMs > 0) {
    // If the other gives in, the child is found as rendered, and that ends the contest.
    driftBackoff.endContest(backoffKey);
    return { result: 'backingOff', path: difference, by, waitMs };
  }
  const hash = hashOf(applied) ?? '';
  const unstableKey = driftBackoff.isRenderedDifferently(uidOf(live), hash, write.input)
    ? `${uidOf(live)} from ${write.input ?? ''}`
    : undefined;
  if (unstableKey !== undefined && driftBackoff.remainingDelayMs(unstableKey) > 0) {
    const times = {
      waitMs: driftBackoff.remainingDelayMs(unstableKey),
      delayMs: driftBackoff.totalDelayMs(unstableKey),
    };
    return { result: 'unstable', path: changedPath(write, cached, applied) ?? difference, ...times };
  }
  if (missingOwners(live, applied).length > 0) await write.beforeAddingOwner(live);
  write.onDrift?.(difference);
  const result = await apply(write, cached, applied);
  if (!isCorrection) driftBackoff.endContest(backoffKey);
  else if (result.metadata.resourceVersion !== live.metadata.resourceVersion)
    driftBackoff.recordCorrection(backoffKey, field === undefined ? undefined : { path: field, by });
  if (unstableKey !== undefined) driftBackoff.recordCorrection(unstableKey);
  driftBackoff.recordApply(uidOf(live), hash, write.input);
  registerStoredForm(write, applied, result);
  return { result: 'applied', live: result, ...contestOf(write, live, applied) };
}

/** The first path apart from the envelope at which a cached child differs from its rendering. */
function changedPath(write: WriteChildOptions, { object }: CacheEntry, applied: KubeObject): string | undefined {
  const { metadata, ...body } = applied;
  const { labels } = metadata;
  return new ChildComparison(applied, write.projection.dropped).firstDifference(
    { ...body, metadata: { labels } },
    object,
  );
}

function contestOf(
  { driftBackoff }: WriteChildOptions,
  live: KubeObject,
  applied: KubeObject,
): { readonly contest?: Contest } {
  const contest = driftBackoff.contestOf(() => backoffKeyOf(uidOf(live), applied));
  return contest === undefined ? {} : { contest };
}

/**
 * The first path at which an apply would change a live child; undefined when it would change nothing.
 *
 * What is cached can show that an apply would change nothing: every rendered field has its value, in its order,
 * and nobody else has written it. When it can't, a dry run of the apply decides.
 *
 * @throws ApiError `Conflict` when the cache was behind; TransportError
 */
async function findDrift(
  write: WriteChildOptions,
  cached: CacheEntry,
  applied: KubeObject,
): Promise<string | undefined> {
  const { object: live, facts } = cached;
  const { projection } = write;
  const hash = hashOf(applied) ?? '';
  const comparison = new ChildComparison(applied, projection.dropped);
  let difference = comparison.firstDifference(applied, live);
  let standing = applied;
  const stored = difference === undefined ? undefined : projection.storedForm(hash);
  if (stored !== undefined) {
    standing = { ...stored, metadata: applied.metadata };
    difference = comparison.firstDifference(standing, live);
  }
  // The server stores the envelope as it is sent. An upgrade of the operator may change it in all children.
  const isCertain = difference !== undefined && isInEnvelope(difference);
  difference ??= comparison.firstUnowned(standing, live, facts.unowned);
  // Another hash means that something else is rendered; the owners of a shared child are not part of its hash.
  const isDrift = hashOf(live) === hash && missingOwners(live, applied).length === 0;
  if (difference === undefined || !isDrift || isCertain) return difference;
  return (await isChangedByApply(write, cached, applied)) ? difference : undefined;
}

/** Objects that come to share a child, and leave it, change its owners: that is no contest. */
const OWNERS = 'metadata.ownerReferences';
const ENVELOPE_FIELDS = [`annotations.${ANNOTATION_PREFIX}`, `labels.${MANAGED_BY_LABEL}`, 'ownerReferences'];

function isInEnvelope(path: string): boolean {
  return ENVELOPE_FIELDS.some((field) => path.startsWith(`metadata.${field}`));
}

/**
 * Asks the server by a dry run whether an apply would change a child, and remembers the response while the child
 * keeps its content.
 */
async function isChangedByApply(write: WriteChildOptions, cached: CacheEntry, applied: KubeObject): Promise<boolean> {
  const { client, child, projection } = write;
  const hash = hashOf(applied) ?? '';
  // What was left out of a reduced child may change as well.
  const content = cached.isReduced ? cached.object.metadata.resourceVersion : contentOf(cached.object);
  const of = digestOf(JSON.stringify([content, applied.metadata]));
  const known = projection.verdict(hash);
  if (known?.of === of) return known.changes;
  const answer = await dryRun(client, child.type, withPreconditions(cached.object, applied));
  const changes = answer === undefined || (await isChanged(write, cached, stripManagedFields(answer).object));
  projection.registerVerdict(hash, { of, changes });
  if (answer !== undefined && !changes) registerStoredForm(write, applied, answer);
  return changes;
}

/** Whether a dry run has changed a child. A reduced one is read if the change may be in what was left out. */
async function isChanged(write: WriteChildOptions, cached: CacheEntry, answer: KubeObject): Promise<boolean> {
  const isSame = (a: KubeObject, b: KubeObject): boolean => isDeepStrictEqual(contentOf(a), contentOf(b));
  if (!cached.isReduced) return !isSame(answer, cached.object);
  return (
    !isSame(write.projection.reduce(answer), cached.object) || !isSame(answer, await getUnchanged(write, cached.object))
  );
}

/**
 * @returns what an apply would make of the object; undefined if the server refuses it as invalid, or a webhook
 * refuses dry runs: then the apply itself gets that response, and is handled there
 */
async function dryRun(client: ApiClient, type: ResourceType, body: KubeObject): Promise<KubeObject | undefined> {
  try {
    return await client.apply(type, body, { fieldManager: FIELD_MANAGER, dryRun: true });
  } catch (error) {
    if (error instanceof ApiError && (error.reason === 'Invalid' || error.reason === 'BadRequest')) return undefined;
    throw error;
  }
}

/** Reads a whole child. @throws ApiError `Conflict` when it is no longer as it was cached */
async function getUnchanged({ client, child }: WriteChildOptions, cached: KubeObject): Promise<KubeObject> {
  const live = await client.get(child.type, refOf(cached));
  if (live?.metadata.resourceVersion !== cached.metadata.resourceVersion || live === undefined)
    throw conflict(child.type, cached, 'was changed or deleted');
  return stripManagedFields(live).object;
}

/** What an apply can change of an object. */
function contentOf(object: KubeObject): unknown {
  const { resourceVersion: _, generation: __, ...metadata } = object.metadata;
  return { ...object, status: undefined, metadata };
}

/** Registers how the server stores what it was sent, as its response shows. */
function registerStoredForm({ projection }: WriteChildOptions, sent: KubeObject, answer: KubeObject): void {
  // Metadata is stored as it is sent, and does not depend on the hash: owners are added and removed.
  const body: KubeObject = { ...sent, metadata: undefined as never };
  const { object } = projection.entryOf(answer);
  projection.registerStored(hashOf(sent) ?? '', new ChildComparison(sent, projection.dropped).storedForm(body, object));
}

/**
 * The key includes the owners: a shared child whose owners change differs under the same hash, and that is no
 * drift.
 */
function backoffKeyOf(child: string, applied: KubeObject): string {
  const owners = applied.metadata.ownerReferences?.map(({ uid }) => uid) ?? [];
  // A digest, because there may be thousands of owners, and each added owner makes another key.
  const said = owners.length < 2 ? owners.join() : digestOf(owners.join());
  return `${child} ${said}`;
}

/**
 * Whether the same was rendered at the last apply, so that somebody else has changed the child since, perhaps
 * together with its hash annotation.
 */
function isDriftCorrection({ driftBackoff }: WriteChildOptions, live: KubeObject, applied: KubeObject): boolean {
  const hash = hashOf(applied);
  return hashOf(live) === hash || driftBackoff.lastAppliedHash(uidOf(live)) === hash;
}

function hashOf(child: KubeObject | undefined): string | undefined {
  return child?.metadata.annotations?.[HASH_ANNOTATION];
}

/** The field manager that wrote a field last, other than the operator. */
async function getLastFieldManager(
  { client, child }: WriteChildOptions,
  live: KubeObject,
  path: string,
): Promise<string> {
  const current = await client.get(child.type, refOf(live));
  return (
    (current && lastFieldManager(current, path, [FIELD_MANAGER, SEED_FIELD_MANAGER])) ?? 'an unknown field manager'
  );
}

async function apply(write: WriteChildOptions, cached: CacheEntry, applied: KubeObject): Promise<KubeObject> {
  const { projection } = write;
  const { object, taken } = await prepareApply(write, cached, applied);
  const result = await applyPrepared(write, object, applied);
  // A field that is as before was a default that the POST had owned: another client may set it now.
  const removed = taken === undefined ? undefined : changedFields(taken, object, result);
  if (removed === undefined) return result;
  projection.registerRemoved(uidOf(object), removed);
  return result;
}

async function applyPrepared(write: WriteChildOptions, object: KubeObject, applied: KubeObject): Promise<KubeObject> {
  const { client, cache, child } = write;
  const ref = refOf(applied);
  try {
    return await applyWithPreconditions(write, object, applied);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'Invalid') throw error;
    const body = withPreconditions(object, applied);
    const replaced = await cache.trackWrite(ref, () => mergePatchLists(client, child.type, ref, body, error));
    // A merge patch neither drops fields that are no longer rendered nor adds an owner.
    return applyWithPreconditions(write, replaced, applied);
  }
}

function applyWithPreconditions(
  { client, cache, child }: WriteChildOptions,
  standing: KubeObject,
  applied: KubeObject,
): Promise<KubeObject> {
  const body = withPreconditions(standing, applied);
  return cache.trackWrite(refOf(applied), () => client.apply(child.type, body, { fieldManager: FIELD_MANAGER }));
}

/**
 * An apply with its preconditions: the UID and the version of the object that it is for. Without the UID it
 * would recreate a deleted object; without the version, a delayed request would restore an old spec.
 */
function withPreconditions(standing: KubeObject, applied: KubeObject): KubeObject {
  const { resourceVersion } = standing.metadata;
  return { ...applied, metadata: { ...applied.metadata, uid: uidOf(standing), resourceVersion } };
}

/**
 * Repeats an apply that the server found invalid as a JSON merge patch (RFC 7386), which replaces the live
 * lists with ours. An apply keeps the list items that others have added under other keys, and both together
 * may be invalid: if somebody changes the number of a Service's port, which is its key, two ports have one
 * name.
 *
 * Owner references are left as they are: other owners' references are theirs. Fields that are no longer
 * rendered stay as well. Both are corrected by another apply, which the server accepts after this. The hash is
 * set by that apply only: if the operator ends in between, the child still differs.
 *
 * @param body - the apply with its preconditions
 * @returns the object after the patch; its fields are owned by `Update`, as after a POST
 * @throws refusal when the patch is invalid too: then the child itself is invalid
 * @throws ApiError, TransportError
 */
async function mergePatchLists(
  client: Pick<ApiClient, 'patch'>,
  type: ResourceType,
  ref: ObjectRef,
  body: KubeObject,
  refusal: ApiError,
): Promise<KubeObject> {
  const annotations = { ...body.metadata.annotations, [HASH_ANNOTATION]: undefined };
  const patch = { ...body, metadata: { ...body.metadata, annotations, ownerReferences: undefined } };
  try {
    return await client.patch(type, ref, patch, { type: 'merge', fieldManager: FIELD_MANAGER });
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'Invalid') throw refusal;
    throw error;
  }
}
