import { keptGoneTypes, policyOf } from '../../constructs/kind/child-policy';
import type { AnyKind } from '../../constructs/kind/kind';
import { COMPLETED_ANNOTATION, HASH_ANNOTATION } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { resourceName, typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { uidOf } from '../client/api-client';
import { LruMap } from '../collections/lru-map';
import { childState } from '../status/child-status';

/** The fingerprints with which children were current, by `<resource>/<name>`. */
export type Completions = Readonly<Record<string, string>>;

/**
 * Remembers the children with `whenGone: 'keep-gone'` that were current when they were deleted. A Job with
 * `ttlSecondsAfterFinished: 0` may be deleted before a reconcile sees it complete; its last event shows that it was.
 */
export class DeletedCompletions {
  /** By the owner's UID. */
  private readonly byOwner = new LruMap<Completions>();
  /** The UIDs of children that the operator itself deletes. */
  private readonly pruned = new LruMap<true>();

  /** Remembers a child that was deleted, as it was last. */
  recordDeletion(kind: AnyKind, child: KubeObject): void {
    const type = keptGoneTypes(kind).find((one) => typeKey(one) === typeKey(child));
    const owner = child.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (type === undefined || owner === undefined || this.pruned.get(uidOf(child)) !== undefined) return;
    const completion = completionOf(type, child, Date.now());
    if (completion !== undefined) this.byOwner.set(owner.uid, { ...this.of(owner.uid), ...completion });
  }

  /** Records that the operator is about to delete a child: if it is rendered again later, it is created again. */
  recordPruning(type: ResourceType, child: KubeObject): void {
    if (policyOf(type).whenGone === 'keep-gone') this.pruned.set(uidOf(child), true);
  }

  /** The children of an owner that were current when they were deleted. */
  of(owner: string): Completions {
    return this.byOwner.get(owner) ?? NONE;
  }

  /**
   * Forgets the children of an owner: they are recorded on it, or it was deleted.
   *
   * @param seen what {@link of} has returned: if a child was deleted since, nothing is forgotten. @default all
   */
  forget(owner: string, seen: Completions = this.of(owner)): void {
    if (this.of(owner) === seen) this.byOwner.delete(owner);
  }
}

const NONE: Completions = Object.freeze({});

/** A child's name in a record. */
export function nameOf(type: ResourceType, { metadata }: KubeObject): string {
  return `${resourceName(type)}/${metadata.name}`;
}

/** A child with the fingerprint that it was applied with, if it is current or was so until its deletion. */
export function completionOf(type: ResourceType, child: KubeObject, now: number): Completions | undefined {
  const { deletionTimestamp: _, ...metadata } = child.metadata;
  const hash = metadata.annotations?.[HASH_ANNOTATION];
  // kstatus takes a pod for current that has failed, or was evicted.
  const { phase } = (child['status'] ?? {}) as { readonly phase?: unknown };
  if (child.kind === 'Pod' && phase === 'Failed') return undefined;
  if (hash === undefined || childState({ ...child, metadata }, now).state !== 'Current') return undefined;
  return { [nameOf(type, child)]: hash };
}

/** The record of an object. What is not a record that the operator wrote counts as none. */
export function recordedCompletions({ metadata }: KubeObject): Completions {
  const text = metadata.annotations?.[COMPLETED_ANNOTATION];
  if (text === undefined) return {};
  try {
    const record: unknown = JSON.parse(text);
    return typeof record === 'object' && record !== null ? (record as Completions) : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
