import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

/**
 * A name for this process among all that ever ran: `<hostname>_<uuid>`, as client-go's. In a pod the hostname is the pod's name;
 * the UUID keeps a restarted container from taking its predecessor's Lease for its own.
 */
export function processIdentity(): string {
  return `${hostname()}_${randomUUID()}`;
}
