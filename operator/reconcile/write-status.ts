import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { FIELD_MANAGER } from '../../constructs/kube/envelope';
import { COMMON_CONDITIONS, type AnyKind, type CommonStatus } from '../../constructs/kind/kind';
import type { Condition, KubeObject } from '../../constructs/kube/kube-object';
import { conditionsOf, type OwnCondition, type Readiness } from '../status/conditions';
import type { ReconcileContext } from './context';
import { checkBackoff, type DriftCorrection, type BackedOff } from './problems';
import { refOf } from '../client/api-client';

/** A status to write. */
export interface StatusWrite {
  readonly object: KubeObject;
  readonly readiness: Readiness;
  /** The kind's own fields. */
  readonly observed: Readonly<Record<string, unknown>>;
  /** The kind's own conditions. @default the existing ones */
  readonly conditions?: readonly OwnCondition[];
}

/**
 * Applies an object's status when it differs from the live one, and removes what others have put into it
 * under our names. If somebody else reverts a status repeatedly, writing it again is delayed longer each
 * time; a different status is written at once.
 *
 * @returns why the write has to wait, if it has to
 * @throws ApiError, TransportError
 */
export async function writeStatus(context: ReconcileContext, write: StatusWrite): Promise<BackedOff | undefined> {
  const { kind, client, now, driftBackoff } = context;
  const { object, readiness, observed } = write;
  const live = (object.status ?? {}) as CommonStatus & Readonly<Record<string, unknown>>;
  const { generation, name, namespace, uid = '' } = object.metadata;
  const previous = live.conditions ?? [];
  const own = write.conditions ?? [];
  const made = conditionsOf(readiness, { generation, previous, now, lastUpdateTime: kind.lastUpdateTime, own });
  // Unchanged: what was found for one generation says nothing about the next.
  const kept = write.conditions === undefined ? previous.filter(({ type }) => isOwnCondition(kind, type)) : [];
  const conditions = [...made, ...kept];
  const status = { ...definedFields(observed), observedGeneration: generation, conditions };
  if (sameStatus(kind, status, live)) return undefined;
  const claims = fingerprint(status);
  // The same status was written last, so somebody else has changed it.
  const correction = driftBackoff.statusHashes.get(uid) === claims ? statusCorrection(uid) : undefined;
  const held = correction && checkBackoff(context, object, correction);
  if (held !== undefined) return held;
  const body: KubeObject = {
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: { name, namespace, uid },
    status,
  };
  const applied = await context.objects.trackWrite(refOf(object), () =>
    client.apply(kind.type, body, { fieldManager: FIELD_MANAGER, subresource: 'status' }),
  );
  const answer = await removeStaleFields(context, applied, status);
  driftBackoff.statusHashes.set(uid, claims);
  // A server that stores something else than it was sent, for example because of an older CRD, reverts
  // nothing.
  if (correction !== undefined && sameStatus(kind, status, (answer.status ?? {}) as Fields & CommonStatus))
    driftBackoff.recordCorrection(correction.backoffKey);
  return undefined;
}

/** The kind's own status fields as they are, for a status that observes nothing new. */
export function ownStatus(kind: AnyKind, object: KubeObject): Fields {
  const live = (object.status ?? {}) as Fields;
  return Object.fromEntries(ownFields(kind).map((field) => [field, live[field]]));
}

type Fields = Readonly<Record<string, unknown>>;

function isOwnCondition(kind: AnyKind, name: string): boolean {
  return kind.conditionTypes.some(({ type }) => type === name);
}

/** The fields as they are sent: undefined values are dropped at any depth. */
export function definedFields(fields: Fields): Fields {
  return JSON.parse(JSON.stringify(fields)) as Fields;
}

/** Whether our fields are as wanted; fields that others put into the status do not count. */
function sameStatus(kind: AnyKind, wanted: Fields & CommonStatus, live: Fields & CommonStatus): boolean {
  const ours = ourConditionTypes(kind);
  return (
    wanted.observedGeneration === live.observedGeneration &&
    ownFields(kind).every((field) => isDeepStrictEqual(wanted[field], live[field])) &&
    isDeepStrictEqual(
      byType(wanted.conditions ?? []),
      byType((live.conditions ?? []).filter(({ type }) => ours.has(type))),
    )
  );
}

/** The server may keep a list map in another order than the one applied. */
function byType(conditions: readonly Condition[]): Readonly<Record<string, Condition>> {
  return Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
}

/** A fingerprint of a status without its times, which follow from the previous status. */
function fingerprint({ conditions = [], ...fields }: Fields & CommonStatus): number {
  const claims = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  const digest = createHash('sha256')
    .update(JSON.stringify([fields, claims]))
    .digest();
  // A small number needs no memory of its own. A collision only counts one write as a correction that was
  // none.
  return digest.readInt32LE(0);
}

function statusCorrection(uid: string): DriftCorrection {
  return {
    backoffKey: `status ${uid}`,
    action: 'Report',
    describe: (after) =>
      `the status is changed by somebody else as often as it is written; it is written again ${after}`,
  };
}

/**
 * Removes the fields and conditions that only we may write and do not want: an apply keeps what another
 * manager has put there, such as a `Stalled` that was restored from a backup.
 *
 * @returns the object after the patch
 */
async function removeStaleFields(
  { kind, client, objects }: ReconcileContext,
  applied: KubeObject,
  wanted: Fields & CommonStatus,
): Promise<KubeObject> {
  const stands = (applied.status ?? {}) as Fields & CommonStatus;
  const fields = ownFields(kind).filter((field) => wanted[field] === undefined && stands[field] !== undefined);
  const ours = ourConditionTypes(kind);
  const said = new Set(wanted.conditions?.map(({ type }) => type));
  const { conditions = [] } = stands;
  const kept = conditions.filter(({ type }) => said.has(type) || !ours.has(type));
  if (fields.length === 0 && kept.length === conditions.length) return applied;
  const ref = refOf(applied);
  // With the version, because the list is replaced as a whole: others may have changed their conditions.
  const patch = {
    metadata: { resourceVersion: applied.metadata.resourceVersion },
    status: { ...Object.fromEntries(fields.map((field) => [field, null])), conditions: kept },
  };
  return objects.trackWrite(ref, () =>
    client.patch(kind.type, ref, patch, { type: 'merge', fieldManager: FIELD_MANAGER, subresource: 'status' }),
  );
}

/** The types of all conditions that only the operator may write. */
function ourConditionTypes(kind: AnyKind): ReadonlySet<string> {
  return new Set([...COMMON_CONDITIONS, ...kind.conditionTypes.map(({ type }) => type)]);
}

/**
 * The kind's own status fields. `conditions` is none of them, though a kind's schema may describe it: others
 * may have conditions there too.
 */
function ownFields(kind: AnyKind): readonly string[] {
  return Object.keys(kind.schema.status.properties ?? {}).filter((field) => field !== 'conditions');
}
