import type { AnyKind } from '../../../constructs/core/kind';
import type { KubeObject } from '../../../constructs/core/kube-object';
import type { ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';

/** Where the objects of a kind are looked at. */
export interface Lookout {
  readonly kind: AnyKind;
  readonly client: Pick<ApiClient, 'list'>;
}

/**
 * The object that the server has under a cached object's name now, its metadata only. By a list of one: the operator's permissions let it list
 * and watch the objects of its kinds, not get one.
 *
 * @throws ApiError, TransportError
 */
export async function lookAt({ kind, client }: Lookout, cached: KubeObject): Promise<KubeObject | undefined> {
  const { namespace, name } = cached.metadata;
  const where = namespace === undefined ? {} : { namespace };
  const { items } = await client.list(kind.type, {
    ...where,
    fieldSelector: `metadata.name=${name}`,
    metadataOnly: true,
  });
  return items.find(({ metadata }) => metadata.name === name);
}

/**
 * Compares a cached object with what the server has under its name.
 *
 * @throws ApiError `Conflict` when the object is gone, replaced or being deleted and the cache has not heard of it
 */
export function refuseUnheardEnd({ plural }: AnyKind, cached: KubeObject, live: KubeObject | undefined): void {
  const { name, uid, deletionTimestamp } = cached.metadata;
  const gone = live === undefined || live.metadata.uid !== uid;
  if (!gone && (live.metadata.deletionTimestamp === undefined || deletionTimestamp !== undefined)) return;
  const end = gone ? 'was deleted, or replaced' : 'is being deleted';
  const message = `${plural} "${name}" ${end}, and no event has told of it yet`;
  throw new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `LIST ${plural} ${name}`);
}
