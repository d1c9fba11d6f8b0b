/** What networks and servers in trouble do to a request, as functions over an `Exchange`. */
import { createHash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { describeRequest, type ProxiedRequest } from './exchange';
import type { Fault } from './fault-proxy';
import { cutEvents, silentWatch } from './watch-faults';

export { limitPageSize, staleReads, withoutStreamingLists } from './watch-faults';
export { cutEvents, delayedEvents, goneInStream, dropEvent, silentAfter, silentWatch } from './watch-faults';

/** Whether a fault may affect a request: not one about a Lease, since the operator would then end itself. */
export function exceptLeases({ resource }: ProxiedRequest): boolean {
  return resource !== 'leases.coordination.k8s.io';
}

/** The connection is reset; the server never receives the request. */
export const resetBefore: Fault = (exchange) => {
  exchange.reset();
  return Promise.resolve();
};

/** The connection is reset while the request is running: the server may have processed it, or not. */
export const resetMidway: Fault = async (exchange) => {
  const underWay = exchange.forward();
  // Its connection to the server ends with the client's; the rejection needs a handler.
  underWay.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  exchange.reset();
};

/** The request takes effect, but the client gets a reset instead of the response, and no event of a watch. */
export const dropResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') (await exchange.forward()).destroy();
  else await exchange.fetchResponse({ outlivesClient: true });
  exchange.reset();
};

/**
 * There is no response, and the server never receives the request. A watch is opened, and no event follows.
 */
export const stall: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') await silentWatch(exchange);
  else await exchange.hang();
};

/**
 * 429, as from API Priority and Fairness.
 * Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
 */
export function tooManyRequests(retryAfterSeconds: number): Fault {
  return respondWith(429, 'TooManyRequests', { 'retry-after': String(retryAfterSeconds) });
}

/** 500, without any effect. */
export const internalError: Fault = respondWith(500, 'InternalError');

/**
 * 503, as from a load balancer without a server, or from a server that starts.
 *
 * @param retryAfterSeconds @default the response does not say
 */
export function unavailable(retryAfterSeconds?: number): Fault {
  return respondWith(
    503,
    'ServiceUnavailable',
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  );
}

/** 409 for every write, as if another client had changed the object; reads pass. */
export const conflict: Fault = (exchange) =>
  exchange.request.writes ? respondWith(409, 'Conflict')(exchange) : exchange.pass();

/**
 * 410 for watches from a version and for further pages of lists, as if the server no longer knew the version.
 * All other requests pass.
 */
export const gone: Fault = (exchange) => {
  const { verb, url } = exchange.request;
  const fromThePast = verb === 'watch' && url.searchParams.has('resourceVersion');
  const furtherPage = verb === 'list' && url.searchParams.has('continue');
  return fromThePast || furtherPage ? respondWith(410, 'Expired')(exchange) : exchange.pass();
};

/** Responds with a Status. */
function respondWith(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): Fault {
  return (exchange) => {
    exchange.respondWithError(code, reason, headers);
    return Promise.resolve();
  };
}

/** The connection ends in the middle of the response; of a watch, in the middle of its next event. */
export const cutResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0)(exchange);
  const answer = await exchange.fetchResponse();
  return exchange.sendTruncated(answer, Math.ceil(answer.body.length / 2));
};

/**
 * Half of the response arrives as if it were complete: valid HTTP, invalid JSON. Watches are cut between two
 * chunks, without an error.
 */
export const truncatedResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0, { cleanly: true })(exchange);
  const answer = await exchange.fetchResponse();
  exchange.markFaulted();
  exchange.send({ ...answer, body: answer.body.subarray(0, Math.ceil(answer.body.length / 2)) });
};

/** How slow a response is. */
interface SlowOptions {
  /** The delay before the request is forwarded, in milliseconds. */
  readonly delayMs: number;
  /** How many bytes arrive at once. @default all */
  readonly bytes?: number;
  /** The pause after them, in milliseconds. @default 10 */
  readonly everyMs?: number;
}

/** The request is delayed, and the response is throttled. */
export function slow({ delayMs, bytes = Infinity, everyMs = 10 }: SlowOptions): Fault {
  return async (exchange) => {
    exchange.markFaulted();
    await delay(delayMs, undefined, { signal: exchange.clientGone });
    await exchange.relay(await exchange.forward(), new ThrottleTransform(bytes, everyMs));
  };
}

/** Passes on a few bytes at a time. */
class ThrottleTransform extends Transform {
  constructor(
    private readonly bytes: number,
    private readonly everyMs: number,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.push(chunk.subarray(0, this.bytes));
    const rest = chunk.subarray(this.bytes);
    if (rest.length === 0) done();
    else setTimeout(() => (this.destroyed ? done() : this._transform(rest, _encoding, done)), this.everyMs);
  }
}

/**
 * Applies a fault to a share of the requests; the others pass. The choice depends on the seed, on the
 * request, and on how often it was sent before, but not on the order of different requests: a run with the
 * same seed affects the same ones.
 *
 * @param rate from 0, none, to 1, all
 */
export function withProbability(seed: string, rate: number, fault: Fault): Fault {
  const asked = new Map<string, number>();
  return (exchange) => {
    const sentence = describeRequest(exchange.request);
    const times = asked.get(sentence) ?? 0;
    asked.set(sentence, times + 1);
    return seededFraction(`${seed} ${sentence} ${String(times)}`) < rate ? fault(exchange) : exchange.pass();
  };
}

/** A number in [0, 1) that depends only on the text. */
export function seededFraction(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
}
