import type { KubeObject } from '../../../constructs/kube/kube-object';
import { managedFieldsOf, type FieldSet } from '../../../operator/apply/managed-fields';

/**
 * A field that the operator's POST created and its last apply does not name. It would stay for ever: an apply takes away only what former applies
 * have named, and no comparison of what is rendered with what stands sees it.
 *
 * @param child - as the server lists it, managedFields and all
 * @returns the field's path in its `FieldsV1` form; undefined when there is none
 */
export function leftBehind(child: KubeObject): string | undefined {
  const setOf = (wanted: 'Apply' | 'Update'): FieldSet | undefined =>
    managedFieldsOf(child).find(
      ({ manager, operation, subresource = '' }) => manager === 'kindred' && operation === wanted && subresource === '',
    )?.fieldsV1;
  const [created, applied] = [setOf('Update'), setOf('Apply')];
  return created === undefined || applied === undefined ? undefined : beyond(created, applied);
}

function beyond(created: FieldSet, applied: FieldSet): string | undefined {
  for (const [step, below] of Object.entries(created)) {
    const named = applied[step];
    if (named === undefined) return step;
    const path = beyond(below, named);
    if (path !== undefined) return `${step}.${path}`;
  }
  return undefined;
}
