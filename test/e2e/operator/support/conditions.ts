import type { CommonStatus } from '../../../../constructs/kind/kind';
import type { Condition, KubeObject } from '../../../../constructs/kube/kube-object';

/** A condition of an object, if it has it. */
export function condition(object: KubeObject, type: string): Condition | undefined {
  return statusOf(object).conditions?.find((candidate) => candidate.type === type);
}

/** Whether a condition stands at this status, for the generation that stands. */
export function is(object: KubeObject, type: string, status: Condition['status']): boolean {
  const found = condition(object, type);
  return found?.status === status && found.observedGeneration === object.metadata.generation;
}

/** Whether the object is Ready as it stands now, not as it stood a change ago. */
export function ready(object: KubeObject): boolean {
  return is(object, 'Ready', 'True') && statusOf(object).observedGeneration === object.metadata.generation;
}

function statusOf(object: KubeObject): CommonStatus {
  return object.status ?? {};
}
