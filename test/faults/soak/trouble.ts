import { setTimeout as delay } from 'node:timers/promises';
import { passing, when } from '../proxy/fault-proxy';
import type { FaultProxy } from '../proxy/fault-proxy';

/** How often something is wrong between the operator and the API server. */
export interface TroubleOptions {
  /** Every connection is cut this often, in milliseconds: all watches begin anew. */
  readonly cutEveryMs: number;
  /** At every how-manieth cut every third request is refused for a second after it. */
  readonly errorsEvery: number;
}

/** Makes ordinary trouble until the signal aborts: a watch that ends, a server that answers 500 or 503 now and then. */
export async function makeTrouble(proxy: FaultProxy, options: TroubleOptions, signal: AbortSignal): Promise<number> {
  let cuts = 0;
  while (await passed(options.cutEveryMs, signal)) {
    proxy.cut();
    cuts += 1;
    // Nobody reads them here, and in half an hour they would be many.
    proxy.requests.length = 0;
    if (cuts % options.errorsEvery !== 0) continue;
    let asked = 0;
    proxy.fault = when(
      ({ beside }) => !beside && (asked += 1) % 3 === 0,
      (exchange) => {
        if (asked % 2 === 0) exchange.refuse(500, 'InternalError');
        else exchange.refuse(503, 'ServiceUnavailable', { 'retry-after': '1' });
        return Promise.resolve();
      },
    );
    await passed(1000, signal);
    proxy.fault = passing;
  }
  return cuts;
}

/** @returns false when the signal came first */
async function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    // The signal; it is what ends the trouble.
  }
  return !signal.aborted;
}
