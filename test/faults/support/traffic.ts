import type { FaultProxy } from '../proxy/fault-proxy';
import type { ProxiedRequest } from '../proxy/proxied-request';

/** What an operator asked in some time. */
export interface Traffic {
  readonly seconds: number;
  readonly requests: number;
  /** Most requests in a second. */
  readonly peak: number;
  /** Most writes to one object, its status included; and which it was. */
  readonly most: { readonly writes: number; readonly object: string };
}

/** Counts what came between two moments (milliseconds since 1970); Leases are left out. */
export function trafficOf(proxy: FaultProxy, from: number, to: number): Traffic {
  const requests = proxy.requests.filter(
    ({ at, resource }) => at >= from && at < to && resource !== 'leases.coordination.k8s.io',
  );
  const perSecond = counted(requests, ({ at }) => String(Math.floor((at - from) / 1000)));
  const perObject = counted(
    // A create does not say its name before it is there; it is written once, or refused because it is there.
    requests.filter(({ writes, beside, name }) => writes && !beside && name !== undefined),
    ({ resource, namespace, name }) => `${resource.replace('/status', '')} ${namespace ?? ''}/${name ?? ''}`,
  );
  const [object, writes] = [...perObject].sort(([, a], [, b]) => b - a)[0] ?? ['none', 0];
  return {
    seconds: (to - from) / 1000,
    requests: requests.length,
    peak: Math.max(0, ...perSecond.values()),
    most: { object, writes },
  };
}

type Request = ProxiedRequest & { readonly at: number };

function counted(requests: readonly Request[], keyOf: (request: Request) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const request of requests) counts.set(keyOf(request), (counts.get(keyOf(request)) ?? 0) + 1);
  return counts;
}

/** Reopened watches, audits and events, in requests a second. */
const BESIDES = 60;

/**
 * Expects what an operator asked to be no storm.
 *
 * A reconcile that fails is tried again after 5 ms, then after twice as long each time: 8 times in the first second, where everything fails
 * at once, and one time more whenever the time has doubled. Each time it stops at the first request that fails, which is the second on
 * average where half of them do; one that was reset is sent twice. What users change meanwhile is tried at once, with delays from the
 * beginning: `changes` bounds how often one object was.
 *
 * A loop without delays comes to thousands in a second, and to hundreds for one object.
 */
export function expectNoStorm(traffic: Traffic, objects: number, changes: number): void {
  const attempts = Math.log2(traffic.seconds / 0.005) + 1;
  const { peak, most } = traffic;
  expect({ peak, isBounded: peak <= BESIDES + 2 * 8 * objects }).toEqual({ peak, isBounded: true });
  expect({ most, isBounded: most.writes <= changes * attempts }).toEqual({ most, isBounded: true });
}
