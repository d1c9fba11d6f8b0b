import type { KubeObject } from '../kube/kube-object';
import type { ResourceType } from '../kube/resource-type';

/** What the children of a type mean for their owner, and what is done when one of them is deleted. */
export interface ChildPolicy {
  /**
   * Whether the owner waits for these children. `current`: the owner is Ready once they are current, as kstatus
   * defines it (a Job: complete). `ignore`: their state does not matter; only an error in writing them does.
   * @default 'current'
   */
  readonly ready?: 'current' | 'ignore';
  /**
   * What is done when such a child does not exist any more. `recreate`: it is created again. `keep-gone`: it is not
   * created again once it was current as it is rendered now, for example a Job that was complete and that
   * `ttlSecondsAfterFinished` has deleted. The operator records that in the annotation `kindred.dev/completed` of the
   * owner. A child that is deleted before it is current, or that failed, is created again.
   * @default 'recreate'
   */
  readonly whenGone?: 'recreate' | 'keep-gone';
}

/** A type that a kind owns, with the policy for its children. */
interface OwnedType<T extends KubeObject> extends ResourceType<T> {
  readonly policy: Required<ChildPolicy>;
}

const DEFAULTS: Required<ChildPolicy> = Object.freeze({ ready: 'current', whenGone: 'recreate' });

/** A type for `owns` of a kind, with a policy: `own(owned.Job, { whenGone: 'keep-gone' })`. */
export function own<T extends KubeObject>(type: ResourceType<T>, policy: ChildPolicy): ResourceType<T> {
  const owning: OwnedType<T> = { ...type, policy: Object.freeze({ ...DEFAULTS, ...policy }) };
  return Object.freeze(owning);
}

/** The policy for the children of a type that a kind owns. */
export function policyOf(type: ResourceType): Required<ChildPolicy> {
  return hasPolicy(type) ? type.policy : DEFAULTS;
}

/** The types of a kind's own children that are not created again. */
export function keptGoneTypes({ owns }: { readonly owns: readonly ResourceType[] }): readonly ResourceType[] {
  return owns.filter((type) => policyOf(type).whenGone === 'keep-gone');
}

/** Whether a type was given a policy. */
export function hasPolicy<T extends KubeObject>(type: ResourceType<T>): type is OwnedType<T> {
  return 'policy' in type;
}
