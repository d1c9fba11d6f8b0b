import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { microTime } from './micro-time';

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
export function releasedRecord(wallMs: number, before: LeaseRecord): LeaseRecord {
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
