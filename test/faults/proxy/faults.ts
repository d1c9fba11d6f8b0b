/** What networks and servers in trouble do to a request, as functions over an `Exchange`. */
import type { ProxiedRequest } from './proxied-request';
import type { Fault } from './fault-proxy';
import { silentWatch } from './watch-faults';

export { cutAnswer, slow, truncatedAnswer } from './answer-faults';
export { chance, sometimes } from './sometimes';
export { pagesOf, stale, staleReads, withoutStreamingLists } from './stale-reads';
export { cutEvents, delayedEvents, goneInStream, loseEvent, silentFrom, silentWatch } from './watch-faults';

/** Whether a fault that is about the work may hurt a request: one about a Lease is left alone, else the operator gives up by itself. */
export function aboutWork({ resource }: ProxiedRequest): boolean {
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
export const loseAnswer: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') (await exchange.forward()).destroy();
  else await exchange.wholeAnswer({ outlivesClient: true });
  exchange.reset();
};

/** Silence: no answer ever comes, and the server never hears of the request. A watch is opened, and nothing follows. */
export const stall: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') await silentWatch(exchange);
  else await exchange.silence();
};

/** 429, as API Priority and Fairness refuses. Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ */
export function tooManyRequests(retryAfterSeconds: number): Fault {
  return refusing(429, 'TooManyRequests', { 'retry-after': String(retryAfterSeconds) });
}

/** 500, without any effect. */
export const internalError: Fault = refusing(500, 'InternalError');

/**
 * 503, as a load balancer refuses that has no server, or a server that starts.
 *
 * @param retryAfterSeconds @default the answer does not say
 */
export function unavailable(retryAfterSeconds?: number): Fault {
  return refusing(
    503,
    'ServiceUnavailable',
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  );
}

/** 409 for every write, as if the object had been changed by another; reads pass. */
export const conflict: Fault = (exchange) =>
  exchange.request.writes ? refusing(409, 'Conflict')(exchange) : exchange.pass();

/** 410 for watches from a version, and for the further pages of lists: the server has forgotten it. The others pass. */
export const gone: Fault = (exchange) => {
  const { verb, url } = exchange.request;
  const fromThePast = verb === 'watch' && url.searchParams.has('resourceVersion');
  const furtherPage = verb === 'list' && url.searchParams.has('continue');
  return fromThePast || furtherPage ? refusing(410, 'Expired')(exchange) : exchange.pass();
};

/** Refuses with a Status. */
export function refusing(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): Fault {
  return (exchange) => {
    exchange.refuse(code, reason, headers);
    return Promise.resolve();
  };
}
