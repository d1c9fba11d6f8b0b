import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ObjectRef } from '../client/api-client';
import type { ReconcileContext } from '../reconcile/context';
import { lookAt, refuseUnheardEnd, type Lookout } from '../reconcile/unheard-end';
import { objectKey, type QueueKey } from './queue-key';

/** One a refusal, told apart by being another object. */
interface Doubt {
  /** That was in the cache. */
  readonly uid: string;
}

/**
 * Objects that may be gone, or going, though the cache holds them as they were: their watch may be down while those of their children are not.
 *
 * Without this, an operator that makes a child of such an object works against the garbage collector: it deletes the child, whose event
 * wakes the object at once, whatever delay its failures have earned, and the child is made again.
 */
export class Doubts {
  private readonly doubted = new Map<QueueKey, Doubt>();

  constructor(private readonly context: Lookout & Pick<ReconcileContext, 'objects'>) {}

  /** The server has refused a write for an object with Conflict or NotFound: the next reconcile has to look first. */
  raise(ref: ObjectRef): void {
    const uid = this.context.objects.get(ref)?.object.metadata.uid;
    if (uid !== undefined) this.doubted.set(objectKey(ref), { uid });
  }

  /**
   * Returns when there is no doubt, or none any more.
   *
   * @throws ApiError `Conflict` when the server does not have the object that the cache holds, or is deleting it unheard; TransportError
   */
  async settle(ref: ObjectRef): Promise<void> {
    const key = objectKey(ref);
    const doubt = this.doubted.get(key);
    if (doubt === undefined) return;
    const { uid } = doubt;
    const before = this.cached(ref, uid);
    const live = before && (await lookAt(this.context, before));
    // Asked for anew: the event may have come meanwhile.
    const cached = before && this.cached(ref, uid);
    if (cached !== undefined) refuseUnheardEnd(this.context.kind, cached, live);
    // What another reconcile was refused meanwhile, this look says nothing of.
    if (this.doubted.get(key) === doubt) this.doubted.delete(key);
  }

  private cached(ref: ObjectRef, uid: string): KubeObject | undefined {
    const object = this.context.objects.get(ref)?.object;
    return object?.metadata.uid === uid ? object : undefined;
  }
}
