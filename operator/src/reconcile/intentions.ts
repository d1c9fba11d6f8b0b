import { FORCE_REMOVE_ANNOTATION, PAUSED_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';

/** The garbage collector's finalizer of `--cascade=orphan`. Source: `metav1.FinalizerOrphanDependents`. */
const ORPHAN = 'orphan';

/** A person asks for nothing to be done. */
export function isPaused({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[PAUSED_ANNOTATION] === 'true';
}

/** A person lets the object go as it is. */
export function isForced({ metadata: { annotations } }: KubeObject): boolean {
  return annotations?.[FORCE_REMOVE_ANNOTATION] === 'true';
}

/** It is deleted with `--cascade=orphan`, and the garbage collector has not done its part yet. */
export function isToBeOrphaned({ metadata: { finalizers = [] } }: KubeObject): boolean {
  return finalizers.includes(ORPHAN);
}
