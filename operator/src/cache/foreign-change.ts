import type { KubeObject } from '../../../constructs/kube/kube-object';

/** Whether the answer to a write of ours shows that somebody else changed the object as well. */
export type HidesForeignChange = (before: KubeObject, answer: KubeObject) => boolean;

/**
 * @param keepsSpec our writes leave spec, labels and annotations alone, so a change of them is somebody else's
 */
export function hidesForeignChange(keepsSpec: boolean): HidesForeignChange {
  return ({ metadata: before }, { metadata: answer }) => {
    if (before.uid !== answer.uid) return false;
    // We never write a deletionTimestamp.
    if (before.deletionTimestamp !== answer.deletionTimestamp) return true;
    if (!keepsSpec) return false;
    return (
      before.generation !== answer.generation ||
      !sameStrings(before.labels, answer.labels) ||
      !sameStrings(before.annotations, answer.annotations)
    );
  };
}

type Strings = Readonly<Record<string, string>>;

function sameStrings(a: Strings = {}, b: Strings = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
