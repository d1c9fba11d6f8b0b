/** The Lease of a leader election: its record, its release, and the election's times. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, ObjectRef, RequestOptions } from '../client/api-client';
import { ApiError } from '../client/errors';
import { microTime } from '../process/clock';

/** The resource type of the Lease. Source: KEP-589, `coordination.k8s.io/v1`. */
export const leaseType: ResourceType = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
};

/** The part of a Lease's `spec` that the election uses. */
export interface LeaseRecord {
  /** Empty when it has no holder. */
  readonly holderIdentity: string;
  /** Undefined when the holder did not say. */
  readonly leaseDurationSeconds: number | undefined;
  /** A MicroTime of the holder's clock: for people, never compared with ours. */
  readonly acquireTime: string | undefined;
  /** As `acquireTime`; its *change* is the holder's sign of life. */
  readonly renewTime: string | undefined;
  /** How often the holder of the Lease changed. */
  readonly leaseTransitions: number;
}

/** Reads a Lease; a field that is missing or of a wrong type counts as absent. */
export function recordOf(lease: KubeObject): LeaseRecord {
  const spec = isRecord(lease['spec']) ? lease['spec'] : {};
  return {
    holderIdentity: textOf(spec['holderIdentity']) ?? '',
    leaseDurationSeconds: numberOf(spec['leaseDurationSeconds']),
    acquireTime: textOf(spec['acquireTime']),
    renewTime: textOf(spec['renewTime']),
    leaseTransitions: numberOf(spec['leaseTransitions']) ?? 0,
  };
}

/**
 * The record with which `identity` holds the Lease from now on, given the previous record (undefined: the
 * Lease is new).
 */
export function heldRecord(
  identity: string,
  leaseDurationMs: number,
  wallMs: number,
  before: LeaseRecord | undefined,
): LeaseRecord {
  const now = microTime(wallMs);
  const mine = before?.holderIdentity === identity;
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
    acquireTime: mine ? (before.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: before === undefined ? 0 : before.leaseTransitions + (mine ? 0 : 1),
  };
}

/**
 * The Lease with this record. Its metadata, including the resourceVersion that guards the update, and foreign
 * fields stay.
 */
export function withRecord(lease: KubeObject, record: LeaseRecord): KubeObject {
  const spec = isRecord(lease['spec']) ? lease['spec'] : {};
  return { ...lease, spec: { ...spec, ...record } };
}

/**
 * An annotation of a Lease: for whom it is. A holder that is somebody else gives it up. The name is common to processes that follow
 * each other, which so keep the Lease between them. A holder of another name, or of none, removes it when it takes the Lease.
 * Source: the preferred holder of KEP-4355, whose field of `spec` servers drop unless a feature gate is on.
 */
const PREFERRED_HOLDER = 'kindred.dev/preferred-holder';

/** For whom a Lease is; the empty string when it is for anybody. */
export function preferredHolderOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[PREFERRED_HOLDER] ?? '';
}

/** The Lease for somebody; undefined: for anybody. */
export function withPreferredHolder(lease: KubeObject, name: string | undefined): KubeObject {
  const { [PREFERRED_HOLDER]: _, ...others } = lease.metadata.annotations ?? {};
  const annotations = name === undefined ? others : { ...others, [PREFERRED_HOLDER]: name };
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}

/**
 * Releases a Lease if `identity` holds it, so that another process can take it at once; does nothing
 * otherwise.
 *
 * After a conflict it tries once more: a renewal of our own, aborted on this side, still took effect.
 *
 * @throws ApiError or TransportError of the request that failed; the abort reason when the options' signal
 * aborts.
 */
export async function releaseLease(
  client: Pick<ApiClient, 'get' | 'update'>,
  ref: ObjectRef,
  identity: string,
  wallMs: () => number,
  options: RequestOptions & { readonly fieldManager: string },
): Promise<void> {
  await updateLease(client, ref, options, (lease) => {
    const record = recordOf(lease);
    return record.holderIdentity === identity ? withRecord(lease, releasedRecord(wallMs(), record)) : undefined;
  });
}

/**
 * Lets anybody have a Lease that was for `name`; does nothing if it was not.
 *
 * @throws as `releaseLease`
 */
export async function withdrawPreference(
  client: Pick<ApiClient, 'get' | 'update'>,
  ref: ObjectRef,
  name: string,
  options: RequestOptions & { readonly fieldManager: string },
): Promise<void> {
  await updateLease(client, ref, options, (lease) =>
    preferredHolderOf(lease) === name ? withPreferredHolder(lease, undefined) : undefined,
  );
}

/** Updates a Lease; after a conflict once more. `change` returns undefined if there is nothing to change. */
async function updateLease(
  client: Pick<ApiClient, 'get' | 'update'>,
  ref: ObjectRef,
  options: RequestOptions & { readonly fieldManager: string },
  change: (lease: KubeObject) => KubeObject | undefined,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const lease = await client.get(leaseType, ref, options);
    const body = lease && change(lease);
    if (body === undefined) return;
    try {
      await client.update(leaseType, body, options);
      return;
    } catch (error) {
      if (tries > 1 || !(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}

/**
 * The record of a Lease that its holder released: without a holder, and expiring in a second even for a
 * reader that ignores that.
 */
function releasedRecord(wallMs: number, before: LeaseRecord): LeaseRecord {
  const now = microTime(wallMs);
  return {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: before.leaseTransitions,
  };
}

/** A Lease as a process has read it last, and when it first read its current record, by its own monotonic clock. */
export interface ObservedLease {
  readonly lease: KubeObject;
  readonly record: LeaseRecord;
  readonly raw: string;
  readonly sinceMs: number;
}

/** When a Lease may be taken though it has a holder: nobody has renewed it for so long. */
export function expiryOf({ record, sinceMs }: ObservedLease, leaseDurationMs: number): number {
  const seconds = record.leaseDurationSeconds;
  return sinceMs + (seconds === undefined ? leaseDurationMs : seconds * 1000);
}

/** Whether a free Lease is left to those whom it is for. They may have ended since, so that this ends too. */
export function isKeptForAnother(
  { lease, sinceMs }: ObservedLease,
  {
    preferred = '',
    now,
    leaseDurationMs,
  }: { readonly preferred: string | undefined; readonly now: number; readonly leaseDurationMs: number },
): boolean {
  const name = preferredHolderOf(lease);
  return name !== '' && name !== preferred && now < sinceMs + leaseDurationMs;
}

/** The times of an election, in milliseconds. */
export interface ElectionTimes {
  /**
   * How long candidates wait, after the last change that they read, before they take the Lease.
   * @default 15000
   */
  readonly leaseDurationMs: number;
  /** How long after the start of its last successful renewal a leader still leads. @default 10000 */
  readonly renewDeadlineMs: number;
  /** The interval between two renewals of a leader; a candidate waits up to 2.2 times that. @default 2000 */
  readonly retryPeriodMs: number;
}

/** client-go's jitter: a candidate waits `retryPeriod * (1 + 1.2 * random)`. */
export const candidateJitter = 1.2;

/**
 * Fills in the defaults (client-go's 15, 10 and 2 s) and checks that the times are safe.
 *
 * @throws RangeError when a time is not positive, or `leaseDuration > renewDeadline > 1.2 * retryPeriod` does
 * not hold (client-go's rules), or the lease is shorter than the Lease API's unit, a second.
 */
export function electionTimes(given: Partial<ElectionTimes>): ElectionTimes {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = given;
  const times = `leaseDuration ${leaseDurationMs} ms, renewDeadline ${renewDeadlineMs} ms, retryPeriod ${retryPeriodMs} ms`;
  // Written so that NaN fails too.
  if (!(leaseDurationMs >= 1000 && retryPeriodMs > 0)) {
    throw new RangeError(`leader election: the lease must last a second at least, and times be positive (${times})`);
  }
  if (!(leaseDurationMs > renewDeadlineMs)) {
    throw new RangeError(`leader election: leaseDuration must exceed renewDeadline, or two could lead (${times})`);
  }
  if (!(renewDeadlineMs > candidateJitter * retryPeriodMs)) {
    throw new RangeError(
      `leader election: renewDeadline must exceed 1.2 * retryPeriod, or renewals come late (${times})`,
    );
  }
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}

/**
 * A name for this process that is unique among all that ever ran: `<hostname>_<uuid>`, as in client-go. In a
 * pod the hostname is the pod's name; because of the UUID, a restarted container does not take its
 * predecessor's Lease for its own.
 */
export function processIdentity(): string {
  return `${hostname()}_${randomUUID()}`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
