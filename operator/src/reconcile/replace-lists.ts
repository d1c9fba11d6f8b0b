import { FIELD_MANAGER } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiClient, ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';

/**
 * Sends an apply that the server has found invalid once more as a JSON merge patch (RFC 7386), which puts our lists in place of those
 * that stand. An apply leaves what others have put into a list under keys of their own, and the two together may be what the server
 * cannot take: somebody changes the number of a Service's port, which is its key, and from then on two ports have one name.
 *
 * Owner references are left as they are: others' are theirs. Fields that are left out now stay as well. Both are what another apply is for, which the
 * server takes after this.
 *
 * @param body - the apply with its preconditions
 * @returns the object as it stands then; its fields are owned by `Update`, as after a POST
 * @throws refusal when that is invalid too: then it is the child that is
 * @throws ApiError, TransportError
 */
export async function replaceLists(
  client: Pick<ApiClient, 'patch'>,
  type: ResourceType,
  ref: ObjectRef,
  body: KubeObject,
  refusal: ApiError,
): Promise<KubeObject> {
  const patch = { ...body, metadata: { ...body.metadata, ownerReferences: undefined } };
  try {
    return await client.patch(type, ref, patch, { type: 'merge', fieldManager: FIELD_MANAGER });
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'Invalid') throw refusal;
    throw error;
  }
}
