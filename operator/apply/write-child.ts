import { FIELD_MANAGER, HASH_ANNOTATION, withEnvelope, type Envelope } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { childKey, refOf, uidOf, type ApiClient, type ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import { factsOf, type CacheEntry, type FieldProjection } from '../informer/projection';
import { toStoredForm, childHash, digestOf, firstDifference } from './diff';
import type { DriftBackoff } from './drift-backoff';
import {
  lastFieldManager,
  managedFieldsOf,
  missingOwners,
  prepareApply,
  omitPath,
  type ApplyContext,
} from './managed-fields';

/** What became of one child. */
export type ChildOutcome =
  | { readonly result: 'unchanged' | 'created' | 'applied'; readonly live: KubeObject }
  /** Its name is taken by an object that is not ours. */
  | { readonly result: 'refused'; readonly live: KubeObject; readonly isUncached?: boolean }
  /**
   * It cannot be written yet; an event will tell when. If the cache does not hold what stands there (`isUnseen`), perhaps none will: what came
   * and went while its watch was down is never told.
   */
  | { readonly result: 'waiting'; readonly message: string; readonly isUncached?: boolean }
  /** Somebody else changes it back again and again; it is left alone for `waitMs` milliseconds. */
  | { readonly result: 'contested'; readonly path: string; readonly by: string; readonly waitMs: number }
  /** Somebody else deletes it again and again; it is created again `waitMs` milliseconds from now, `delayMs` after the last time. */
  | { readonly result: 'deleted'; readonly waitMs: number; readonly delayMs: number };

/** What `writeChild` needs to know. */
interface WriteChildOptions extends ApplyContext {
  readonly envelope: Omit<Envelope, 'hash'>;
  /** Whether owner references stand in the live object that must not; they are dropped by an apply. */
  readonly strayOwners?: (live: KubeObject) => boolean;
  /** Called before an owner is entered in an object that stands without it. What it throws prevents the write. */
  readonly beforeAddingOwner: (live: KubeObject) => Promise<void>;
  /** Slows down corrections that do not last. */
  readonly driftBackoff: DriftBackoff;
  /** Whose child it is, for the contests: the owner's UID, or one string for a shared key. */
  readonly ownerKey: string;
  /** Told what was rendered, so that the cache keeps no more of the child. */
  readonly projection: FieldProjection;
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
export async function writeChild(write: WriteChildOptions): Promise<ChildOutcome> {
  const { child, cache } = write;
  const applied = child.seeds.reduce((manifest, seed) => omitPath(manifest, seed.path), child.manifest);
  const envelope = { ...write.envelope, hash: childHash(applied) };
  const ref = refOf(child.manifest);
  const cachedHash = (): string | undefined => hashOf(cache.get(ref)?.object);
  const before = cachedHash();
  const stands = (): boolean => cachedHash() === envelope.hash;
  if (write.projection.register(envelope.hash, applied) && stands()) cache.reproject(ref);
  try {
    return await createOrUpdate(write, withEnvelope(child.manifest, envelope), withEnvelope(applied, envelope));
  } finally {
    // Refused, or not yet written: there may never be a child of this hash.
    if (!stands()) write.projection.forget(envelope.hash);
    // Also where the child was brought there by the first of two writes, and the second failed.
    if (before !== cachedHash()) write.projection.forget(before);
  }
}

async function createOrUpdate(write: WriteChildOptions, body: KubeObject, applied: KubeObject): Promise<ChildOutcome> {
  const { child, cache, driftBackoff } = write;
  const cached = cache.get(refOf(body));
  if (cached !== undefined) return updateExisting(write, cached, applied);
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
    registerStoredForm(write, body, live);
    return requireCached(write, { result: 'created', live });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.hasCause('NamespaceTerminating')) return { result: 'waiting', message: 'the namespace is being deleted' };
    if (error.reason !== 'AlreadyExists') throw error;
  }
  const live = await write.client.get(child.type, refOf(body));
  if (live === undefined)
    return requireCached(write, { result: 'waiting', message: 'an object of its name is just going away' });
  return requireCached(write, await updateExisting(write, { object: live, facts: factsOf(live) }, applied));
}

/** An outcome that counts only if the cache holds the child or what is in its way: of what it does not hold, it may miss the end. */
function requireCached({ cache, child }: WriteChildOptions, outcome: ChildOutcome): ChildOutcome {
  if (cache.get(refOf(child.manifest)) !== undefined) return outcome;
  if (outcome.result === 'contested' || outcome.result === 'deleted') return outcome;
  if (outcome.result === 'refused' || outcome.result === 'waiting') return { ...outcome, isUncached: true };
  return { result: 'waiting', message: 'it has been written, and no event has told of it yet', isUncached: true };
}

async function updateExisting(
  write: WriteChildOptions,
  cached: CacheEntry,
  applied: KubeObject,
): Promise<ChildOutcome> {
  const { object: live } = cached;
  const claim = write.claim(live);
  if (claim === 'foreign') return { result: 'refused', live };
  if (claim === 'predecessor') {
    return { result: 'waiting', message: 'the child of a deleted object of the same name still stands' };
  }
  if (live.metadata.deletionTimestamp !== undefined) return { result: 'waiting', message: 'it is being deleted' };
  const difference =
    findDrift(write, applied, live) ?? (write.strayOwners?.(live) ? 'metadata.ownerReferences' : undefined);
  if (difference === undefined) return { result: 'unchanged', live };
  const backoffKey = isDriftCorrection(write, live, applied) ? backoffKeyOf(uidOf(live), applied) : undefined;
  const waitMs = backoffKey === undefined ? 0 : write.driftBackoff.remainingDelayMs(backoffKey);
  if (waitMs > 0) return { result: 'contested', path: difference, by: await getLastFieldManager(write, live), waitMs };
  if (missingOwners(live, applied).length > 0) await write.beforeAddingOwner(live);
  write.onDrift?.(difference);
  const result = await apply(write, cached, applied);
  if (backoffKey !== undefined) write.driftBackoff.recordCorrection(backoffKey);
  write.driftBackoff.recordApply(uidOf(live), hashOf(applied) ?? '');
  registerStoredForm(write, applied, result);
  return { result: 'applied', live: result };
}

/** The first path that stands neither as applied nor as the server is known to store it. */
function findDrift({ projection }: WriteChildOptions, applied: KubeObject, live: KubeObject): string | undefined {
  const difference = firstDifference(applied, live);
  if (difference === undefined) return undefined;
  const stored = projection.storedForm(hashOf(applied) ?? '');
  return stored === undefined ? difference : firstDifference({ ...stored, metadata: applied.metadata }, live);
}

/** The server's answer shows how it stores what it was sent. */
function registerStoredForm({ projection }: WriteChildOptions, sent: KubeObject, answer: KubeObject): void {
  // Metadata are stored as they are sent, and are no function of the hash: owners come and go.
  const body = { ...sent, metadata: undefined };
  const same = firstDifference(body, answer) === undefined;
  projection.registerStored(
    hashOf(sent) ?? '',
    same ? undefined : (toStoredForm(body, projection.project(answer)) as KubeObject),
  );
}

/** Other owners of a shared child are other contents, though its hash is the same: their coming and going is no contest. */
function backoffKeyOf(child: string, applied: KubeObject): string {
  const owners = applied.metadata.ownerReferences?.map(({ uid }) => uid) ?? [];
  // Of thousands of owners, each of whose comings makes another key.
  const said = owners.length < 2 ? owners.join() : digestOf(owners.join());
  return `${child} ${said}`;
}

/** The same was rendered when it was last applied, so somebody else changed it: perhaps together with the hash that says so. */
function isDriftCorrection({ driftBackoff }: WriteChildOptions, live: KubeObject, applied: KubeObject): boolean {
  const hash = hashOf(applied);
  return hashOf(live) === hash || driftBackoff.lastAppliedHash(uidOf(live)) === hash;
}

function hashOf(child: KubeObject | undefined): string | undefined {
  return child?.metadata.annotations?.[HASH_ANNOTATION];
}

/** The field manager that wrote an object last, apart from us. */
async function getLastFieldManager({ client, child }: WriteChildOptions, live: KubeObject): Promise<string> {
  const current = await client.get(child.type, refOf(live));
  return (current && lastFieldManager(managedFieldsOf(current), FIELD_MANAGER)) ?? 'an unknown field manager';
}

async function apply(write: WriteChildOptions, cached: CacheEntry, applied: KubeObject): Promise<KubeObject> {
  const { client, cache, child } = write;
  const ref = refOf(applied);
  const standing = await prepareApply(write, cached, applied);
  try {
    return await applyWithPreconditions(write, standing, applied);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'Invalid') throw error;
    const body = withPreconditions(standing, applied);
    const replaced = await cache.trackWrite(ref, () => mergePatchLists(client, child.type, ref, body, error));
    // A merge patch neither drops the fields that are left out now nor enters an owner.
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
 * An apply with its preconditions: the object that it was rendered for, as it stood then. Without the UID it would bring back what was
 * deleted; without the version, one that was long on its way would bring back what the spec said before.
 */
function withPreconditions(standing: KubeObject, applied: KubeObject): KubeObject {
  const { resourceVersion } = standing.metadata;
  return { ...applied, metadata: { ...applied.metadata, uid: uidOf(standing), resourceVersion } };
}

/**
 * Sends an apply that the server has found invalid once more as a JSON merge patch (RFC 7386), which puts our lists in place of those
 * that stand. An apply leaves what others have put into a list under keys of their own, and the two together may be what the server
 * cannot take: somebody changes the number of a Service's port, which is its key, and from then on two ports have one name.
 *
 * Owner references are left as they are: others' are theirs. Fields that are left out now stay as well. Both are what another apply is for, which the
 * server takes after this.
 *
 * @param body - the apply with its preconditions
 * @returns the object as it stands then; its fields are owned by `Update`, as after a POST
 * @throws refusal when that is invalid too: then it is the child that is
 * @throws ApiError, TransportError
 */
async function mergePatchLists(
  client: Pick<ApiClient, 'patch'>,
  type: ResourceType,
  ref: ObjectRef,
  body: KubeObject,
  refusal: ApiError,
): Promise<KubeObject> {
  const patch = { ...body, metadata: { ...body.metadata, ownerReferences: undefined } };
  try {
    return await client.patch(type, ref, patch, { type: 'merge', fieldManager: FIELD_MANAGER });
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'Invalid') throw refusal;
    throw error;
  }
}
