/** The Secret that stores an object's effect state: whom it belongs to, and the format of its data. */

import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import {
  HASH_ANNOTATION,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNER_UID_ANNOTATION,
  ANNOTATION_PREFIX,
  STATE_FINALIZER,
  STATE_KEY_SECRET,
  ownerReference,
} from '../../constructs/kube/envelope';
import type { KubeObject, OwnerReference } from '../../constructs/kube/kube-object';
import type { EffectRecord, EffectState } from './effect-state';

/**
 * On a Secret that has no owner because its owner wants that. A Secret without this mark whose owner
 * reference is missing has lost it to somebody else: to the garbage collector, when its owner was deleted
 * with `--cascade=orphan`.
 */
export const RETAINED_ANNOTATION = `${ANNOTATION_PREFIX}retained`;

/** On a Secret that stays while its owner is being deleted with `--cascade=orphan`. */
const ORPHANED_ANNOTATION = `${ANNOTATION_PREFIX}orphaned`;

/** A Secret, or a ConfigMap with a sealed state, as the API returns it. */
export interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

/**
 * Merges a new body into the existing Secret: labels, annotations and finalizers of others stay, and so do
 * the owner references.
 */
export function mergeSecret(before: Secret, body: Secret): Secret {
  const { finalizers = [], annotations, deletionTimestamp } = before.metadata;
  // The server rejects new finalizers on an object that is being deleted.
  const more = deletionTimestamp === undefined ? (body.metadata.finalizers ?? []) : [];
  const uid = body.metadata.annotations?.[OWNER_UID_ANNOTATION] ?? '';
  const metadata = {
    ...before.metadata,
    labels: { ...before.metadata.labels, ...body.metadata.labels },
    annotations: { ...annotations, [OWNER_UID_ANNOTATION]: uid },
    finalizers: [...new Set([...finalizers, ...more])],
  };
  return { ...body, metadata };
}

/**
 * The Secret without its owner, which wants it to stay. Returns the same object if nothing changes, as the
 * functions below do.
 */
export function markRetained(owner: KubeObject, secret: Secret): Secret {
  return setMark(removeOwner(owner, secret), RETAINED_ANNOTATION);
}

/** The Secret without its owner, which is being deleted and leaves it behind. */
export function markOrphaned(owner: KubeObject, secret: Secret): Secret {
  return setMark(removeOwner(owner, secret), ORPHANED_ANNOTATION);
}

/** The Secret with its owner. */
export function setOwner(owner: KubeObject, secret: Secret): Secret {
  const plain = setMark(secret, undefined);
  const { ownerReferences = [] } = secret.metadata;
  if (ownerReferences.some(({ uid }) => uid === owner.metadata.uid)) return plain;
  const { ownerReferences: others = [] } = removeOwner(owner, secret).metadata;
  // Not a controller reference: nothing renders the Secret, so nothing may prune it.
  return { ...plain, metadata: { ...plain.metadata, ownerReferences: [...others, ownerReference(owner)] } };
}

/** The Secret with only this one of the marks that say why it has no owner. */
function setMark(secret: Secret, mark: string | undefined): Secret {
  const { annotations: before = {} } = secret.metadata;
  const marks = [RETAINED_ANNOTATION, ORPHANED_ANNOTATION];
  if (marks.every((each) => (before[each] === 'true') === (each === mark))) return secret;
  const others = Object.fromEntries(Object.entries(before).filter(([name]) => !marks.includes(name)));
  const annotations = mark === undefined ? others : { ...others, [mark]: 'true' };
  return { ...secret, metadata: { ...secret.metadata, annotations } };
}

/** The Secret without this owner; other owners stay. */
function removeOwner(owner: KubeObject, secret: Secret): Secret {
  if (!refersTo(owner, secret)) return secret;
  const { ownerReferences = [] } = secret.metadata;
  const others = ownerReferences.filter((reference) => !isReferenceTo(owner, reference));
  return { ...secret, metadata: { ...secret.metadata, ownerReferences: others } };
}

/** Whether the Secret has this owner, under its present UID or another. */
function refersTo(owner: KubeObject, { metadata: { ownerReferences = [] } }: KubeObject): boolean {
  return ownerReferences.some((reference) => isReferenceTo(owner, reference));
}

/** Compares the name, too: after both were restored from a backup, the owner's UID is another. */
function isReferenceTo({ kind, metadata: { name, uid } }: KubeObject, reference: OwnerReference): boolean {
  return reference.uid === uid || (reference.kind === kind && reference.name === name);
}

/** Whether the Secret stays when its owner is deleted. */
export function isOrphanedBy(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[ORPHANED_ANNOTATION] === 'true' || hasLostOwner(owner, secret);
}

/**
 * Whether somebody else removed its owner. A Secret without the finalizer was created by hand, or restored
 * from a backup, without an owner.
 */
export function hasLostOwner(owner: KubeObject, secret: KubeObject): boolean {
  const { annotations, finalizers = [] } = secret.metadata;
  const isRetained = annotations?.[RETAINED_ANNOTATION] === 'true';
  return finalizers.includes(STATE_FINALIZER) && !isRetained && !refersTo(owner, secret);
}

/** Whether the Secret was created for this owner. */
export function belongsTo(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid;
}

/**
 * Whether a Secret was made by an operator for another object than `by`: a state, a kubeconfig, the key of sealed states.
 * An object that could name it would have its values sent to where its own effects reach. Children, which have a hash,
 * are not among them.
 */
export function isOfAnother(secret: KubeObject, by: KubeObject): boolean {
  const { name, labels, annotations } = secret.metadata;
  // Even where somebody has restored it without its annotation.
  if (name === STATE_KEY_SECRET) return true;
  const isOurs = labels?.[MANAGED_BY_LABEL] === MANAGED_BY && annotations?.[OWNER_UID_ANNOTATION] !== undefined;
  return isOurs && annotations[HASH_ANNOTATION] === undefined && !belongsTo(by, secret);
}

/** Whether a Secret holds a state, or the key of sealed ones. */
export function isState({ data = {}, metadata: { name, finalizers = [] } }: Secret): boolean {
  return Object.hasOwn(data, RECORDS) || finalizers.includes(STATE_FINALIZER) || name === STATE_KEY_SECRET;
}

/** The key of the records in a Secret's data. */
const RECORDS = 'effects.json';
/** The prefix of the keys of values. */
const VALUE = 'value.';

/**
 * The prefix of the records if the values are compressed. It makes them invalid JSON, so that a version that
 * does not know the prefix fails to read them, and neither starts again nor overwrites them.
 */
const COMPRESSED = 'v2 ';

/** States up to this many bytes are stored uncompressed, which every version reads. */
const PLAIN_BYTES = 262_144;

/** The largest value that is decompressed, in bytes: the data is our own, but memory is limited. */
const MAX_VALUE_BYTES = 268_435_456;

/**
 * As fast as gzip, with a window over the whole value: the scripts of 200 machines differ little, and are
 * some 20 KiB apart.
 */
const SETTINGS = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
};

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/** A Secret's data by key, before base64 encoding. */
export type StateData = Readonly<Record<string, Buffer>>;

/**
 * Encodes a state as a Secret's data. There are two formats: `effects.json` has the records in JSON and
 * `value.<name>` each value; above 256 KiB, the records begin with "v2 ", and each value is compressed by
 * Brotli.
 */
export async function encodeState({ records, values }: EffectState): Promise<StateData> {
  const text = JSON.stringify(records);
  const entries = Object.entries(values).map(([name, value]) => [VALUE + name, Buffer.from(value, 'utf8')] as const);
  const plain = { [RECORDS]: Buffer.from(text, 'utf8'), ...Object.fromEntries(entries) };
  if (sizeOf(plain) <= PLAIN_BYTES) return plain;
  const compressed = entries.map(async ([key, value]) => [key, await compress(value, SETTINGS)] as const);
  return { [RECORDS]: Buffer.from(COMPRESSED + text, 'utf8'), ...Object.fromEntries(await Promise.all(compressed)) };
}

/** Decodes the state in a Secret's data, in either format. @throws Error when the data is not a state */
export async function decodeState(data: StateData): Promise<EffectState> {
  const text = data[RECORDS]?.toString('utf8') ?? '{}';
  const isCompressed = text.startsWith(COMPRESSED);
  const records = JSON.parse(isCompressed ? text.slice(COMPRESSED.length) : text) as Record<string, EffectRecord>;
  const values = Object.entries(data)
    .filter(([key]) => key.startsWith(VALUE))
    .map(async ([key, value]) => {
      const bytes = isCompressed ? await decompress(value, { maxOutputLength: MAX_VALUE_BYTES }) : value;
      return [key.slice(VALUE.length), bytes.toString('utf8')] as const;
    });
  return { records, values: Object.fromEntries(await Promise.all(values)) };
}

/** As the API server counts it: the bytes of the values. Source: `ValidateSecret` of Kubernetes. */
export function sizeOf(data: StateData): number {
  return Object.values(data).reduce((sum, { length }) => sum + length, 0);
}
