import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { readPagedList } from '../cache/paged-list';
import type { ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';

/** Where the objects of a kind are looked at. */
export interface Lookout {
  readonly kind: AnyKind;
  readonly client: Pick<ApiClient, 'list'>;
}

/** Whatever has an object's name. */
interface Named {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'>;
}

/** So many objects are looked at one by one; more of them by a list of their namespace, which may hold thousands of others. */
const SINGLY = 4;
const PAGE_SIZE = 500;

/**
 * The object that the server has under a cached object's name now, its metadata only. By a list of one: the operator's permissions let it list
 * and watch the objects of its kinds, not get one.
 *
 * @throws ApiError, TransportError
 */
export async function lookAt({ kind, client }: Lookout, { metadata }: Named): Promise<KubeObject | undefined> {
  const { name } = metadata;
  const { items } = await client.list(kind.type, {
    ...within(metadata),
    fieldSelector: `metadata.name=${name}`,
    metadataOnly: true,
  });
  return items.find((item) => item.metadata.name === name);
}

/**
 * As {@link lookAt}, for several objects of one namespace.
 *
 * @returns what the server has under each name, in their order
 * @throws ApiError, TransportError
 */
export async function lookAtAll(
  lookout: Lookout,
  objects: readonly Named[],
): Promise<readonly (KubeObject | undefined)[]> {
  const [first] = objects;
  if (first === undefined || objects.length <= SINGLY)
    return Promise.all(objects.map((object) => lookAt(lookout, object)));
  const live = new Map<string, KubeObject>();
  await readPagedList(
    lookout.client,
    lookout.kind.type,
    { ...within(first.metadata), limit: PAGE_SIZE, metadataOnly: true },
    (object) => live.set(object.metadata.name, object),
    () => live.clear(),
  );
  return objects.map(({ metadata }) => live.get(metadata.name));
}

function within({ namespace }: Named['metadata']): { readonly namespace?: string } {
  return namespace === undefined ? {} : { namespace };
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
  throw unheard(plural, name, gone ? 'was deleted, or replaced' : 'is being deleted');
}

/** What is thrown when the server knows of an object what the cache does not. */
export function unheard(plural: string, name: string, what: string): ApiError {
  const message = `${plural} "${name}" ${what}, and no event has told of it yet`;
  return new ApiError({ code: 409, reason: 'Conflict', message, causes: [] }, `LIST ${plural} ${name}`);
}
