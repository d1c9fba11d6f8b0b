import { OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';

/** What the API server took of what users wanted, and what was let go on purpose: all that a walk's end is measured by. */
export class Ledger {
  /** The last answer about each object that is to stand, by `kind/name`. */
  private readonly wanted = new Map<string, KubeObject>();
  /** Owners that were deleted with their children left behind, and children whose owner references somebody took away. */
  private readonly released = new Set<string>();

  /** The server has created or changed an object. */
  took(object: KubeObject): void {
    this.wanted.set(keyOf(object), object);
  }

  /** The server has begun to delete it. */
  deleted({ kind, name }: { readonly kind: string; readonly name: string }): void {
    this.wanted.delete(`${kind}/${name}`);
  }

  /**
   * Whatever bears this UID, belonged to what bears it, or was made for this shared key may stay when nobody owns it any more.
   *
   * @param sign a UID, or a shared key as the annotation says it
   */
  release(sign: string | undefined): void {
    if (sign !== undefined) this.released.add(sign);
  }

  isReleased({ metadata: { uid = '', annotations = {} } }: KubeObject): boolean {
    const signs = [uid, annotations[OWNER_UID_ANNOTATION], annotations[SHARED_KEY_ANNOTATION]];
    return signs.some((sign) => sign !== undefined && this.released.has(sign));
  }

  /** What users want, if they want it. */
  find(kind: string, name: string): KubeObject | undefined {
    return this.wanted.get(`${kind}/${name}`);
  }

  all(): readonly KubeObject[] {
    return [...this.wanted.values()];
  }
}

function keyOf({ kind, metadata: { name } }: KubeObject): string {
  return `${kind}/${name}`;
}
