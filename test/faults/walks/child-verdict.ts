import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import type { ExpectedChild } from '../../../testing';
import { leftBehind } from '../support/left-behind';
import { firstPath } from './first-path';

/** How a child stands that an owner is to have. */
export type ChildVerdict =
  /** As it must. */
  | { readonly verdict: 'stands'; readonly live: KubeObject }
  /** It cannot: its name is somebody else's. */
  | { readonly verdict: 'taken' }
  /** It cannot: the server does not want it so. What stands of it, if anything, is ours. */
  | { readonly verdict: 'refused'; readonly live: KubeObject | undefined }
  /** It waits: the ServiceAccount that it uses is somebody else's. What stands of it, if anything, is ours, and as it was. */
  | { readonly verdict: 'held'; readonly live: KubeObject | undefined }
  /** It could, and does not. */
  | { readonly verdict: 'wrong'; readonly problem: string };

/**
 * Asks the server itself: writing what must stand, as a dry run, would either change nothing, or change something, or be refused. So the verdict
 * knows the server's defaults and normalisations without being taught any, and owes nothing to the operator's own way to compare.
 *
 * @param isOurs whether an object that stands under the name is one that the operator may write
 */
export async function childVerdict(
  client: ApiClient,
  { type, object }: ExpectedChild,
  live: KubeObject | undefined,
  isOurs: (live: KubeObject) => boolean,
): Promise<ChildVerdict> {
  const { name } = object.metadata;
  if (live !== undefined && !isOurs(live)) return { verdict: 'taken' };
  const written = await dryRun(client, type, object, live);
  if (written === 'refused') return { verdict: 'refused', live };
  if (live === undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" is missing` };
  const path = firstPath(essence(written), essence(live));
  if (path !== undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" is not as rendered at ${path}` };
  const left = leftBehind(live);
  if (left !== undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" was left with ${left}` };
  return { verdict: 'stands', live };
}

async function dryRun(
  client: ApiClient,
  type: ResourceType,
  object: KubeObject,
  live: KubeObject | undefined,
): Promise<KubeObject | 'refused'> {
  const options = { fieldManager: 'kindred', dryRun: true };
  try {
    if (live === undefined) return await client.create(type, object, options);
    const { uid } = live.metadata;
    const metadata = { ...object.metadata, ...(uid === undefined ? {} : { uid }) };
    return await client.apply(type, { ...object, metadata }, options);
  } catch (error) {
    if (error instanceof ApiError && (error.code === 422 || error.code === 400)) return 'refused';
    // Deleted or replaced between the look and the question.
    if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return {} as KubeObject;
    throw error;
  }
}

/** What a write of the same would leave as it is, and what nobody but the server or the child's own controller decides, left out. */
function essence(object: KubeObject): object {
  const { labels = {}, annotations = {}, ownerReferences = [], deletionTimestamp } = { ...object.metadata };
  const body = Object.entries(object).filter(
    ([field]) => !['apiVersion', 'kind', 'metadata', 'status'].includes(field),
  );
  const owners = [...ownerReferences].sort((a, b) => (a.uid < b.uid ? -1 : 1));
  return { ...Object.fromEntries(body), metadata: { labels, annotations, ownerReferences: owners, deletionTimestamp } };
}
