/** What networks and servers in trouble do to a request, as functions over an `Exchange`. */
import { createHash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { describeRequest, type ProxiedRequest } from './exchange';
import type { Fault } from './fault-proxy';
import { cutEvents, silentWatch } from './watch-faults';

export { limitPageSize, canBeStale, staleReads, withoutStreamingLists } from './watch-faults';
export { cutEvents, delayedEvents, goneInStream, dropEvent, silentAfter, silentWatch } from './watch-faults';

/** Whether a fault that is about the work may hurt a request: one about a Lease is left alone, else the operator gives up by itself. */
export function exceptLeases({ resource }: ProxiedRequest): boolean {
  return resource !== 'leases.coordination.k8s.io';
}

/** The connection is reset; the server never hears of the request. */
export const resetBefore: Fault = (exchange) => {
  exchange.reset();
  return Promise.resolve();
};

/** The connection is reset while the request is under way: the server may have taken it, or not. */
export const resetMidway: Fault = async (exchange) => {
  const underWay = exchange.forward();
  // Its connection to the server ends with the client's: whoever waits for the answer hears of that.
  underWay.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  exchange.reset();
};

/** The request takes effect, but the client sees a reset instead of the answer. Of a watch, it sees no event. */
export const dropResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') (await exchange.forward()).destroy();
  else await exchange.fetchResponse({ outlivesClient: true });
  exchange.reset();
};

/** Silence: no answer ever comes, and the server never hears of the request. A watch is opened, and nothing follows. */
export const stall: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') await silentWatch(exchange);
  else await exchange.hang();
};

/** 429, as API Priority and Fairness refuses. Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ */
export function tooManyRequests(retryAfterSeconds: number): Fault {
  return respondWith(429, 'TooManyRequests', { 'retry-after': String(retryAfterSeconds) });
}

/** 500, without any effect. */
export const internalError: Fault = respondWith(500, 'InternalError');

/**
 * 503, as a load balancer refuses that has no server, or a server that starts.
 *
 * @param retryAfterSeconds @default the answer does not say
 */
export function unavailable(retryAfterSeconds?: number): Fault {
  return respondWith(
    503,
    'ServiceUnavailable',
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  );
}

/** 409 for every write, as if the object had been changed by another; reads pass. */
export const conflict: Fault = (exchange) =>
  exchange.request.writes ? respondWith(409, 'Conflict')(exchange) : exchange.pass();

/** 410 for watches from a version, and for the further pages of lists: the server has forgotten it. The others pass. */
export const gone: Fault = (exchange) => {
  const { verb, url } = exchange.request;
  const fromThePast = verb === 'watch' && url.searchParams.has('resourceVersion');
  const furtherPage = verb === 'list' && url.searchParams.has('continue');
  return fromThePast || furtherPage ? respondWith(410, 'Expired')(exchange) : exchange.pass();
};

/** Refuses with a Status. */
function respondWith(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): Fault {
  return (exchange) => {
    exchange.respondWithError(code, reason, headers);
    return Promise.resolve();
  };
}

/** The connection ends in the middle of the answer; of a watch, in the middle of its next event. */
export const cutResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0)(exchange);
  const answer = await exchange.fetchResponse();
  return exchange.sendTruncated(answer, Math.ceil(answer.body.length / 2));
};

/** Half of the answer comes as if it were all: HTTP is satisfied, JSON is not. Watches are cut between two chunks, without an error. */
export const truncatedResponse: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0, { cleanly: true })(exchange);
  const answer = await exchange.fetchResponse();
  exchange.markFaulted();
  exchange.send({ ...answer, body: answer.body.subarray(0, Math.ceil(answer.body.length / 2)) });
};

/** How slow an answer is. */
interface SlowOptions {
  /** Before the request is sent on, in milliseconds. */
  readonly delayMs: number;
  /** So many bytes come at once ... @default all that there are */
  readonly bytes?: number;
  /** ... and then nothing for this long, in milliseconds. @default 10 */
  readonly everyMs?: number;
}

/** The request is slow to go, and the answer trickles. */
export function slow({ delayMs, bytes = Infinity, everyMs = 10 }: SlowOptions): Fault {
  return async (exchange) => {
    exchange.markFaulted();
    await delay(delayMs, undefined, { signal: exchange.clientGone });
    await exchange.relay(await exchange.forward(), new ThrottleTransform(bytes, everyMs));
  };
}

/** Passes a few bytes at a time. */
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
 * Hurts a share of the requests, the others pass. Which, depends on the seed, on what is asked, and on how often it was asked before, but
 * not on the order in which different requests come: so a run with the same seed hurts the same ones.
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

/** A number from 0 to 1, without 1, that depends on a text alone. */
export function seededFraction(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
}
