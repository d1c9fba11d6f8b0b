import { createHash } from 'node:crypto';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { beginningOf } from '../runtime/beginning-of';

/** 22 characters of six bits each, with which two texts are hardly ever taken for one. */
const LENGTH = 22;

/**
 * A fingerprint of a child as it was rendered: equal for equal bytes. It stands in the child's envelope, so that a restarted
 * operator sees what a former one applied, fields that are no longer rendered included.
 */
export function childHash(rendered: KubeObject): string {
  return digestOf(JSON.stringify(rendered));
}

/** A fingerprint of a text. */
export function digestOf(text: string): string {
  return beginningOf(createHash('sha256').update(text).digest('base64url'), LENGTH);
}
