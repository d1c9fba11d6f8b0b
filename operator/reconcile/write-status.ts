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
  /** The kind's own conditions. @default those that stand */
  readonly conditions?: readonly OwnCondition[];
}

/**
 * Applies an object's status when it differs from what stands, and takes away what others have put into it under our names. A status that
 * somebody else changes back again and again is written ever more slowly; another one is written at once.
 *
 * @returns what is to be said when it had to be left as it is
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
  // As they are: what was found out of one generation says nothing of the next.
  const kept = write.conditions === undefined ? previous.filter(({ type }) => isOwnCondition(kind, type)) : [];
  const conditions = [...made, ...kept];
  const status = { ...definedFields(observed), observedGeneration: generation, conditions };
  if (sameStatus(kind, status, live)) return undefined;
  const claims = fingerprint(status);
  // The same was written last, so what differs is somebody else's.
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
  // A server that keeps something else than it is sent, having an older CRD say, contests nothing.
  if (correction !== undefined && sameStatus(kind, status, (answer.status ?? {}) as Fields & CommonStatus))
    driftBackoff.recordCorrection(correction.backoffKey);
  return undefined;
}

/**
 * Takes away what a status says besides ours and only we may say: an apply leaves what another manager has put there, such as the `Stalled` that
 * came back with a backup.
 *
 * @returns the object as it stands then
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
  // The version, because the list goes as a whole: others may have changed theirs.
  const patch = {
    metadata: { resourceVersion: applied.metadata.resourceVersion },
    status: { ...Object.fromEntries(fields.map((field) => [field, null])), conditions: kept },
  };
  return objects.trackWrite(ref, () =>
    client.patch(kind.type, ref, patch, { type: 'merge', fieldManager: FIELD_MANAGER, subresource: 'status' }),
  );
}

function statusCorrection(uid: string): DriftCorrection {
  return {
    backoffKey: `status ${uid}`,
    action: 'Report',
    describe: (after) =>
      `the status is changed by somebody else as often as it is written; it is written again ${after}`,
  };
}

/** Of all that a status says; when it began to be so follows from what stood. */
function fingerprint({ conditions = [], ...fields }: Fields & CommonStatus): number {
  const claims = conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  const digest = createHash('sha256')
    .update(JSON.stringify([fields, claims]))
    .digest();
  // A small number takes no memory of its own. Two that are equal by chance make one write be counted that need not.
  return digest.readInt32LE(0);
}

/** The kind's own status fields as they stand, for a status that observes nothing new. */
export function ownStatus(kind: AnyKind, object: KubeObject): Fields {
  const live = (object.status ?? {}) as Fields;
  return Object.fromEntries(ownFields(kind).map((field) => [field, live[field]]));
}

/** The types of all conditions that nobody else is to write. */
function ourConditionTypes(kind: AnyKind): ReadonlySet<string> {
  return new Set([...COMMON_CONDITIONS, ...kind.conditionTypes.map(({ type }) => type)]);
}

function isOwnCondition(kind: AnyKind, name: string): boolean {
  return kind.conditionTypes.some(({ type }) => type === name);
}

/** Conditions are no field of a kind's own, though its schema has them where it says what sets its own apart: some of them may be others'. */
function ownFields(kind: AnyKind): readonly string[] {
  return Object.keys(kind.schema.status.properties ?? {}).filter((field) => field !== 'conditions');
}

type Fields = Readonly<Record<string, unknown>>;

/** The fields as the server gets them: what is undefined, at any depth, is left out. */
function definedFields(fields: Fields): Fields {
  return JSON.parse(JSON.stringify(fields)) as Fields;
}

/** Whether our fields stand as wanted; fields that others put into the status do not count. */
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
