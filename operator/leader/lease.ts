import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, ObjectRef, RequestOptions } from '../client/api-client';
import { ApiError } from '../client/errors';
import { microTime } from '../process/clock';

/** The resource that leadership is held in. Source: KEP-589, `coordination.k8s.io/v1`. */
export const leaseType: ResourceType = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
};

/** The part of a Lease's `spec` that the election uses. */
export interface LeaseRecord {
  /** Empty: nobody holds it. */
  readonly holderIdentity: string;
  /** Undefined when the holder did not say. */
  readonly leaseDurationSeconds: number | undefined;
  /** A MicroTime of the holder's clock: for people, never compared with ours. */
  readonly acquireTime: string | undefined;
  /** As `acquireTime`; that it *changes* is the holder's sign of life. */
  readonly renewTime: string | undefined;
  /** How often the Lease went to another holder. */
  readonly leaseTransitions: number;
}

/** Reads a Lease; whatever is missing or of a wrong type counts as absent. */
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

/** The record by which `identity` holds the Lease from now on, given who held it before (undefined: the Lease is new). */
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

/** The record of a Lease that its holder gave up: nobody's, and over in a second even for a reader that overlooks that. */
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

/** The Lease with this record. Its metadata, with the resourceVersion that guards the update, and foreign fields stay. */
export function withRecord(lease: KubeObject, record: LeaseRecord): KubeObject {
  const spec = isRecord(lease['spec']) ? lease['spec'] : {};
  return { ...lease, spec: { ...spec, ...record } };
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

/**
 * Gives a Lease up if `identity` holds it, so that another can take it at once; does nothing otherwise.
 *
 * A conflict means that a renewal of our own, given up on this side, still came through; it is tried once more.
 *
 * @throws ApiError or TransportError of the request that failed; the abort reason when the options' signal aborts.
 */
export async function releaseLease(
  client: Pick<ApiClient, 'get' | 'update'>,
  ref: ObjectRef,
  identity: string,
  wallMs: () => number,
  options: RequestOptions & { readonly fieldManager: string },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const lease = await client.get(leaseType, ref, options);
    if (lease === undefined || recordOf(lease).holderIdentity !== identity) return;
    try {
      await client.update(leaseType, withRecord(lease, releasedRecord(wallMs(), recordOf(lease))), options);
      return;
    } catch (error) {
      if (tries > 1 || !(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}

/** The times of an election, in milliseconds. */
export interface ElectionTimes {
  /** How long others wait, after the last sign of life they saw, before they take the Lease. @default 15000 */
  readonly leaseDurationMs: number;
  /** How long after the start of its last successful renewal a leader still leads. @default 10000 */
  readonly renewDeadlineMs: number;
  /** Between two renewals of a leader; a candidate waits up to 2.2 times that. @default 2000 */
  readonly retryPeriodMs: number;
}

/** client-go's jitter: a candidate waits `retryPeriod * (1 + 1.2 * random)`. */
export const candidateJitter = 1.2;

/**
 * Fills in the defaults (client-go's 15, 10 and 2 s) and checks that the times can be safe.
 *
 * @throws RangeError when a time is not positive, or `leaseDuration > renewDeadline > 1.2 * retryPeriod` does not hold (client-go's
 * rules), or the lease is shorter than the Lease API's unit, a second.
 */
export function electionTimes(given: Partial<ElectionTimes>): ElectionTimes {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = given;
  const times = `leaseDuration ${leaseDurationMs} ms, renewDeadline ${renewDeadlineMs} ms, retryPeriod ${retryPeriodMs} ms`;
  // Written so that NaN fails, too.
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
 * A name for this process among all that ever ran: `<hostname>_<uuid>`, as client-go's. In a pod the hostname is the pod's name;
 * the UUID keeps a restarted container from taking its predecessor's Lease for its own.
 */
export function processIdentity(): string {
  return `${hostname()}_${randomUUID()}`;
}
