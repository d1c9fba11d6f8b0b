import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import {
  OWNER_UID_ANNOTATION,
  ANNOTATION_PREFIX,
  STATE_FINALIZER,
  ownerReference,
} from '../../constructs/kube/envelope';
import type { KubeObject, OwnerReference } from '../../constructs/kube/kube-object';
import type { EffectRecord, EffectState } from './effect-state';

/**
 * On a Secret that has no owner because its owner asks for that. One without this mark whose owner reference is missing has lost it to somebody
 * else: to the garbage collector, when its owner was deleted with `--cascade=orphan`.
 */
export const RETAINED_ANNOTATION = `${ANNOTATION_PREFIX}retained`;

/** On a Secret that stays while its owner goes with `--cascade=orphan`: it tells so until that is gone. */
const ORPHANED_ANNOTATION = `${ANNOTATION_PREFIX}orphaned`;

/** A Secret as the API has it. */
export interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** A body over what stands: labels, annotations and finalizers of others stay, and so does whether it has an owner. */
export function mergeSecret(before: Secret, body: Secret): Secret {
  const { finalizers = [], annotations, deletionTimestamp } = before.metadata;
  // The server refuses new finalizers on what is being deleted.
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

/** Without an owner, as that asks for; itself when it is so already, as with the next ones. */
export function markRetained(owner: KubeObject, secret: Secret): Secret {
  return setMark(removeOwner(owner, secret), RETAINED_ANNOTATION);
}

/** Without an owner, as that goes and leaves it behind. */
export function markOrphaned(owner: KubeObject, secret: Secret): Secret {
  return setMark(removeOwner(owner, secret), ORPHANED_ANNOTATION);
}

/** With its owner. */
export function setOwner(owner: KubeObject, secret: Secret): Secret {
  const plain = setMark(secret, undefined);
  const { ownerReferences = [] } = secret.metadata;
  if (ownerReferences.some(({ uid }) => uid === owner.metadata.uid)) return plain;
  const { ownerReferences: others = [] } = removeOwner(owner, secret).metadata;
  // Not a controller's: nothing renders it, so nothing may prune it.
  return { ...plain, metadata: { ...plain.metadata, ownerReferences: [...others, ownerReference(owner)] } };
}

/** With this mark alone of those that tell why it has no owner. */
function setMark(secret: Secret, mark: string | undefined): Secret {
  const { annotations: before = {} } = secret.metadata;
  const marks = [RETAINED_ANNOTATION, ORPHANED_ANNOTATION];
  if (marks.every((each) => (before[each] === 'true') === (each === mark))) return secret;
  const others = Object.fromEntries(Object.entries(before).filter(([name]) => !marks.includes(name)));
  const annotations = mark === undefined ? others : { ...others, [mark]: 'true' };
  return { ...secret, metadata: { ...secret.metadata, annotations } };
}

/** Without this owner; others stay. */
function removeOwner(owner: KubeObject, secret: Secret): Secret {
  if (!refersTo(owner, secret)) return secret;
  const { ownerReferences = [] } = secret.metadata;
  const others = ownerReferences.filter((reference) => !isReferenceTo(owner, reference));
  return { ...secret, metadata: { ...secret.metadata, ownerReferences: others } };
}

/** Whether it has this owner, in whichever life. */
function refersTo(owner: KubeObject, { metadata: { ownerReferences = [] } }: KubeObject): boolean {
  return ownerReferences.some((reference) => isReferenceTo(owner, reference));
}

/** By its name, too: after both were restored from a backup, the owner's UID is another. */
function isReferenceTo({ kind, metadata: { name, uid } }: KubeObject, reference: OwnerReference): boolean {
  return reference.uid === uid || (reference.kind === kind && reference.name === name);
}

/** Whether it stays while its owner goes. */
export function isOrphanedBy(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[ORPHANED_ANNOTATION] === 'true' || hasLostOwner(owner, secret);
}

/** Whether somebody else took its owner off. One that is not held was put there by hand, or restored from a backup, without an owner. */
export function hasLostOwner(owner: KubeObject, secret: KubeObject): boolean {
  const { annotations, finalizers = [] } = secret.metadata;
  const isRetained = annotations?.[RETAINED_ANNOTATION] === 'true';
  return finalizers.includes(STATE_FINALIZER) && !isRetained && !refersTo(owner, secret);
}

/** Whether it was made for this owner. */
export function belongsTo(owner: KubeObject, secret: KubeObject): boolean {
  return secret.metadata.annotations?.[OWNER_UID_ANNOTATION] === owner.metadata.uid;
}

/** Key of the records within a Secret's data. */
const RECORDS = 'effects.json';
/** In front of the names of values, as keys. */
const VALUE = 'value.';

/**
 * In front of the records where the values are compressed. It makes them no JSON, so that a version that does not know of it fails at reading them, and
 * neither begins anew nor writes over them.
 */
const COMPRESSED = 'v2 ';

/** States up to this many bytes are stored as they are, which every version reads. */
const PLAIN_BYTES = 262_144;

/** The largest value that is read, in bytes: what is compressed is our own, but memory has an end. */
const MAX_VALUE_BYTES = 268_435_456;

/** As quick as gzip, with a window over all of it: scripts of 200 machines differ in little, and lie some 20 KiB apart. */
const SETTINGS = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
};

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/** What a Secret holds, by key, before it is encoded in base64. */
export type StateData = Readonly<Record<string, Buffer>>;

/**
 * A state as a Secret's data. There are two formats: `effects.json` has the records in JSON and `value.<name>` each value; where that is more than
 * 256 KiB, "v2 " stands before the records, and each value is compressed by Brotli.
 */
export async function encodeState({ records, values }: EffectState): Promise<StateData> {
  const text = JSON.stringify(records);
  const entries = Object.entries(values).map(([name, value]) => [VALUE + name, Buffer.from(value, 'utf8')] as const);
  const plain = { [RECORDS]: Buffer.from(text, 'utf8'), ...Object.fromEntries(entries) };
  if (sizeOf(plain) <= PLAIN_BYTES) return plain;
  const compressed = entries.map(async ([key, value]) => [key, await compress(value, SETTINGS)] as const);
  return { [RECORDS]: Buffer.from(COMPRESSED + text, 'utf8'), ...Object.fromEntries(await Promise.all(compressed)) };
}

/** The state that a Secret's data hold, in whichever format. @throws Error when they are none */
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
