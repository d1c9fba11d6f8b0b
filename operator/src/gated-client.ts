import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, RequestOptions } from './client/api-client';

/** The ways to write. */
export type WriteVerb = 'create' | 'update' | 'apply' | 'patch' | 'delete';

/** What happens before every write. */
export interface WriteGate {
  /** Throws when this process must not write, because it does not lead. */
  readonly assertMayWrite: () => void;
  /**
   * How long a write that is asked for now may take in all, in milliseconds, the waits and repetitions that the server asked for included: it
   * must have taken effect or failed before another process can lead.
   * @default no bound but that of each attempt
   */
  readonly withinMs?: () => number;
  /** Told of every write that is sent. */
  readonly onWrite: (verb: WriteVerb, type: ResourceType) => void;
}

/** A client whose writes pass a gate: the deadline of the Lease is checked before each, and each is counted. */
export function gatedClient(client: ApiClient, gate: WriteGate): ApiClient {
  return {
    server: client.server,
    get: (type, ref, options) => client.get(type, ref, options),
    list: (type, options) => client.list(type, options),
    watch: (type, options) => client.watch(type, options),
    getPath: (path, options) => client.getPath(path, options),
    close: () => client.close(),
    // Each is a promise that rejects, never a call that throws.
    create: async (type, body, options) => client.create(type, body, pass(gate, 'create', type, options)),
    update: async (type, body, options) => client.update(type, body, pass(gate, 'update', type, options)),
    apply: async (type, body, options) => client.apply(type, body, pass(gate, 'apply', type, options)),
    patch: async (type, ref, body, options) => client.patch(type, ref, body, pass(gate, 'patch', type, options)),
    delete: async (type, ref, options = {}) => client.delete(type, ref, pass(gate, 'delete', type, options)),
  };
}

/** The options of one write, if it may be sent. */
function pass<O extends RequestOptions>(gate: WriteGate, verb: WriteVerb, type: ResourceType, options: O): O {
  gate.assertMayWrite();
  gate.onWrite(verb, type);
  return gate.withinMs === undefined ? options : { ...options, withinMs: gate.withinMs() };
}
