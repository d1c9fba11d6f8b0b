import type { KubeObject } from '../../../constructs/core/kube-object';
import type { ApiClient, ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { ReconcileContext } from '../reconcile/context';
import { objectKey } from './queue-key';
import type { QueueKey } from './queue-key';

/**
 * Objects that may be gone though the cache still holds them: their watch may be down while those of their children are not.
 *
 * Without this, an operator that makes a child of such an object works against the garbage collector: it deletes the child, whose event
 * wakes the object at once, whatever delay its failures have earned, and the child is made again.
 */
export class Doubts {
  /** The UID that was in the cache. */
  private readonly doubted = new Map<QueueKey, string>();

  constructor(
    private readonly context: Pick<ReconcileContext, 'kind' | 'objects'> & { readonly client: Pick<ApiClient, 'list'> },
  ) {}

  /** The server has refused a write for an object with Conflict or NotFound: the next reconcile has to look first. */
  raise(ref: ObjectRef): void {
    const uid = this.cachedUid(ref);
    if (uid !== undefined) this.doubted.set(objectKey(ref), uid);
  }

  /**
   * Returns when there is no doubt, or none any more.
   *
   * @throws ApiError `Conflict` when the server does not have the object that the cache holds; TransportError
   */
  async settle(ref: ObjectRef): Promise<void> {
    const key = objectKey(ref);
    const uid = this.doubted.get(key);
    if (uid === undefined) return;
    if (uid === this.cachedUid(ref)) {
      const { kind } = this.context;
      const live = await this.look(ref);
      if (live?.metadata.uid !== uid && uid === this.cachedUid(ref)) {
        const message = `${kind.plural} "${ref.name}" was deleted, or replaced, and no event has told of it yet`;
        throw new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `LIST ${kind.plural} ${ref.name}`);
      }
    }
    this.doubted.delete(key);
  }

  /** A list of one: the operator's permissions let it list and watch the objects of its kinds, not get one. */
  private async look({ namespace, name }: ObjectRef): Promise<KubeObject | undefined> {
    const { client, kind } = this.context;
    const fieldSelector = `metadata.name=${name}`;
    const where = namespace === undefined ? {} : { namespace };
    const { items } = await client.list(kind.type, { ...where, fieldSelector, metadataOnly: true });
    return items[0];
  }

  private cachedUid(ref: ObjectRef): string | undefined {
    return this.context.objects.get(ref)?.object.metadata.uid;
  }
}
