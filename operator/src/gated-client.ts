import type { ResourceType } from '../../constructs/core/resource-type';
import type { ApiClient, RequestOptions } from './client/api-client';
import { TransportError } from './client/errors';

/** The ways to write. */
export type WriteVerb = 'create' | 'update' | 'apply' | 'patch' | 'delete';

/** What happens before every write. */
export interface WriteGate {
  /** Throws when this process must not write, because it does not lead. */
  readonly assertMayWrite: () => void;
  /**
   * How long a write that is asked for now may take in all, in milliseconds, the waits and repetitions that the server asked for included: it
   * must have taken effect or failed before another process can lead.
   * @default the client's own timeout
   */
  readonly timeoutMs?: () => number;
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
    create: (type, body, options) =>
      pass(gate, 'create', type, options, (bounded) => client.create(type, body, bounded)),
    update: (type, body, options) =>
      pass(gate, 'update', type, options, (bounded) => client.update(type, body, bounded)),
    apply: (type, body, options) => pass(gate, 'apply', type, options, (bounded) => client.apply(type, body, bounded)),
    patch: (type, ref, body, options) =>
      pass(gate, 'patch', type, options, (bounded) => client.patch(type, ref, body, bounded)),
    delete: (type, ref, options = {}) =>
      pass(gate, 'delete', type, options, (bounded) => client.delete(type, ref, bounded)),
  };
}

/** Sends one write, if it may be sent, and gives it up when its time is over. */
async function pass<O extends RequestOptions, T>(
  gate: WriteGate,
  verb: WriteVerb,
  type: ResourceType,
  options: O,
  send: (options: O) => Promise<T>,
): Promise<T> {
  gate.assertMayWrite();
  gate.onWrite(verb, type);
  if (gate.timeoutMs === undefined) return send(options);
  const timeoutMs = gate.timeoutMs();
  const late = new AbortController();
  const giveUp = (): void => {
    const request = `${verb} ${type.plural}`;
    late.abort(
      new TransportError(`${request}: given up after ${String(timeoutMs)} ms: another may lead soon`, request),
    );
  };
  const timer = setTimeout(giveUp, timeoutMs);
  const signal = options.signal === undefined ? late.signal : AbortSignal.any([options.signal, late.signal]);
  try {
    return await send({ timeoutMs, ...options, signal });
  } finally {
    clearTimeout(timer);
  }
}
