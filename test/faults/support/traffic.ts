import { readFileSync } from 'node:fs';
import type { SeenRequest } from '../../../testing/fault-proxy/fault-proxy';
import { byMode } from '../mode';

/** What there was to do. */
export interface Workload {
  /** How many objects there are. */
  readonly objects: number;
  /** How often users changed one of them, or its children. */
  readonly changes: number;
}

/** What an operator asked in some time. */
export interface Traffic {
  readonly requests: number;
  /** Requests a second, in the `WINDOW_MS` in which there were most; the lists of audits are left out. */
  readonly rate: number;
  /** Most writes to one object, its status included; and which it was. */
  readonly most: OfObject;
  /** The same, in any `WINDOW_MS`. */
  readonly densest: OfObject;
  /** Most watches of one type that were opened, or lists of it that were begun to fill a cache, in any `WINDOW_MS`; and which it was. */
  readonly opened: Opened;
}

/** How often one object was written. */
interface OfObject {
  readonly writes: number;
  readonly object: string;
}

/** How often a watch was opened, or a list begun. */
interface Opened {
  readonly requests: number;
  /** Its verb and its type. */
  readonly what: string;
}

/** What is looked at of a request. */
export type ObservedRequest = Pick<
  SeenRequest,
  'at' | 'verb' | 'resource' | 'namespace' | 'name' | 'createdName' | 'url'
> &
  Pick<SeenRequest, 'writes' | 'isBackground' | 'metadataOnly'>;

/** Long against the first delays of a backoff, which are to be fast, and against a burst; short against the trouble. */
const WINDOW_MS = 5_000;

/** Counts what came between two moments (milliseconds since 1970); Leases are left out. */
export function measureTraffic(asked: readonly ObservedRequest[], from: number, to: number): Traffic {
  const requests = asked.filter(
    ({ at, resource }) => at >= from && at < to && resource !== 'leases.coordination.k8s.io',
  );
  const writes = groupedBy(
    objectOf,
    requests.filter((request) => request.writes && !request.isBackground),
  );
  const opened = most(
    groupedBy(({ verb, resource }) => `${verb} ${resource}`, requests.filter(fillsCache)),
    mostInWindow,
  );
  return {
    requests: requests.length,
    rate: mostInWindow(requests.filter((request) => !isConsistencyCheck(request))) / (WINDOW_MS / 1000),
    most: ofObject(most(writes, ({ length }) => length)),
    densest: ofObject(most(writes, mostInWindow)),
    opened: { what: opened.group, requests: opened.count },
  };
}

/**
 * Whether it compares a cache with the server: that comes at a pace of its own. Such a list is of all namespaces, as the caches are; of one
 * namespace the operator looks up what lives, and a list of one object asks what version the server is at.
 */
function isConsistencyCheck({ verb, metadataOnly, namespace, url }: ObservedRequest): boolean {
  const { searchParams: query } = url;
  const isWhole = namespace === undefined && !query.has('fieldSelector') && query.get('limit') !== '1';
  return verb === 'list' && metadataOnly && isWhole;
}

/** Whether it begins to fill a cache; further pages are as many as there are objects. */
function fillsCache({ verb, metadataOnly, url }: ObservedRequest): boolean {
  return verb === 'watch' || (verb === 'list' && !metadataOnly && !url.searchParams.has('continue'));
}

/** An object's status is part of it. */
function objectOf({ resource, namespace = '', name, createdName = '' }: ObservedRequest): string {
  return `${resource.replace('/status', '')} ${namespace}/${name ?? createdName}`;
}

type Groups = ReadonlyMap<string, readonly ObservedRequest[]>;

function groupedBy(name: (asked: ObservedRequest) => string, all: readonly ObservedRequest[]): Groups {
  const groups = new Map<string, ObservedRequest[]>();
  for (const asked of all) {
    const group = groups.get(name(asked)) ?? [];
    groups.set(name(asked), group);
    group.push(asked);
  }
  return groups;
}

interface Counted {
  readonly group: string;
  readonly count: number;
}

function most(groups: Groups, count: (of: readonly ObservedRequest[]) => number): Counted {
  let found: Counted = { group: 'none', count: 0 };
  for (const [group, of] of groups) {
    const its = count(of);
    if (its > found.count) found = { group, count: its };
  }
  return found;
}

function ofObject({ group, count }: Counted): OfObject {
  return { object: group, writes: count };
}

/** How many came in the window in which most came: it begins with one of them. */
function mostInWindow(asked: readonly ObservedRequest[]): number {
  const times = asked.map(({ at }) => at).sort((a, b) => a - b);
  let first = 0;
  let found = 0;
  times.forEach((at, last) => {
    while (at - (times[first] ?? at) >= WINDOW_MS) first += 1;
    found = Math.max(found, last - first + 1);
  });
  return found;
}

/**
 * What a load without any trouble takes; `network/connections.slow.test.ts` holds them to be true. The short form's load is so brief that on a fast
 * machine all of it falls into one window. In the long form a change has time to be rolled out before the next one, so that a fast machine tells of more
 * states.
 */
export const baseline = {
  /** Writes to one object for each change that users make to it or its children: of its children's states its status tells. Measured: up to 1.25 and 1.94. */
  writesPerChange: byMode({ short: 1.5, long: 2.5 }),
  /** Writes to one object in a window. Measured in the long form: 14. */
  writesInWindow: byMode({ short: 12, long: 16 }),
  /** Requests a second for each object; in the long form most of them rest most of the time. Measured in the short form: 20 requests in all. */
  rate: byMode({ short: 4.5, long: 1.8 }),
};

/**
 * How often what a calm run asks once may be asked in trouble.
 *
 * A reconcile that fails is tried again after 5 ms, then after twice as long each time: eleven times at most in a window in which everything
 * fails, and two times or three in the windows after it; what users change is tried at once besides, and so is a status at each event of a
 * child, of which there are some thirty (most in one window, on a quiet machine: 42). Half of the requests failing, each comes twice on average,
 * and one of dozens of objects far more often than that.
 *
 * Trying again every 100 ms comes to fifty in a window besides these thirty, a loop without delays to hundreds.
 * The long form's bounds come to the same, from more that a calm run takes.
 */
const FACTOR = byMode({ short: 6, long: 4 });

/**
 * Watches of one type that may be opened in a window, and lists of it that may be begun to fill a cache; the size of the load does not matter.
 *
 * A watch that fails is opened again after 200 ms at most, then after twice as long each time, so six times in a window; an end of the trouble that
 * cuts it, or an audit that wants a new list, begins anew, and a paged list that is gone midway is taken twice. Measured: 5.
 *
 * Delays that do not grow come to 25 at least, and 20 a second to 100.
 */
const OPENED_IN_WINDOW = 15;

/**
 * Expects what an operator asked to be no storm.
 *
 * @param factor how often what a calm run asks once may be asked. @default what trouble may take
 */
export function expectNoStorm(traffic: Traffic, { objects, changes }: Workload, factor = FACTOR): void {
  const { most, densest, rate, opened } = traffic;
  const bounds = {
    most: factor * baseline.writesPerChange * changes,
    densest: factor * baseline.writesInWindow,
    rate: factor * baseline.rate * objects,
    opened: OPENED_IN_WINDOW,
  };
  const isBounded = {
    most: most.writes <= bounds.most,
    densest: densest.writes <= bounds.densest,
    rate: rate <= bounds.rate,
    opened: opened.requests <= bounds.opened,
  };
  expect({ traffic, bounds, isBounded }).toEqual({
    ...{ traffic, bounds },
    isBounded: { most: true, densest: true, rate: true, opened: true },
  });
}

/** The resident memory of a process, in MiB. Source: proc_pid_status(5), which counts in kB of 1024 bytes. */
export function rssMiB(pid: number): number {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8')) ?? [];
  if (kB === undefined) throw new Error(`process ${String(pid)} has no VmRSS: has it ended?`);
  return Number(kB) / 1024;
}
