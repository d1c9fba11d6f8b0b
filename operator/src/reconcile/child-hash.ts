import { createHash } from 'node:crypto';
import type { KubeObject } from '../../../constructs/core/kube-object';

/**
 * A fingerprint of a child as it was rendered: equal for equal bytes. It stands in the child's envelope, so that a restarted
 * operator sees what a former one applied, fields that are no longer rendered included.
 */
export function childHash(rendered: KubeObject): string {
  return createHash('sha256').update(JSON.stringify(rendered)).digest('base64url').slice(0, 22);
}
