import type { ApiClient, ObjectRef, RequestOptions } from '../client/api-client';
import { ApiError } from '../client/errors';
import { leaseType, recordOf, releasedRecord, withRecord } from './lease-record';

/**
 * Gives a Lease up if `identity` holds it, so that another can take it at once; does nothing otherwise.
 *
 * A conflict means that a renewal of our own, given up on this side, still came through; it is tried once more.
 *
 * @throws ApiError or TransportError of the request that failed; the abort reason when the options' signal aborts.
 */
export async function releaseLease(
  client: Pick<ApiClient, 'get' | 'update'>,
  ref: ObjectRef,
  identity: string,
  wallMs: () => number,
  options: RequestOptions & { readonly fieldManager: string },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const lease = await client.get(leaseType, ref, options);
    if (lease === undefined || recordOf(lease).holderIdentity !== identity) return;
    try {
      await client.update(leaseType, withRecord(lease, releasedRecord(wallMs(), recordOf(lease))), options);
      return;
    } catch (error) {
      if (tries > 1 || !(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}
