import type { Fault } from '../proxy/fault-proxy';
import { when } from '../proxy/fault-proxy';
import {
  aboutWork,
  conflict,
  cutAnswer,
  cutEvents,
  delayedEvents,
  gone,
  goneInStream,
  internalError,
  loseAnswer,
  resetBefore,
  resetMidway,
  slow,
  sometimes,
  staleReads,
  stall,
  tooManyRequests,
  truncatedAnswer,
  unavailable,
} from '../proxy/faults';

/** What a fault may need to know. */
export interface FaultContext {
  /** Which requests are hurt. */
  readonly seed: string;
  /** The cluster's present revision. */
  readonly revision: string;
}

/** The faults of a walk. Those that hurt a share leave the others, so that the operator gets on, and into states that it must get out of. */
const faults = {
  'reset before': ({ seed }) => sometimes(seed, 0.3, resetBefore),
  'reset midway': ({ seed }) => sometimes(seed, 0.3, resetMidway),
  'lose answer': ({ seed }) => sometimes(seed, 0.3, loseAnswer),
  'cut answer': ({ seed }) => sometimes(seed, 0.3, cutAnswer),
  'truncate answer': ({ seed }) => sometimes(seed, 0.3, truncatedAnswer),
  stall: ({ seed }) => sometimes(seed, 0.2, stall),
  slow: () => slow({ delayMs: 150 }),
  'too many requests': ({ seed }) => sometimes(seed, 0.4, tooManyRequests(1)),
  'internal error': ({ seed }) => sometimes(seed, 0.4, internalError),
  unavailable: ({ seed }) => sometimes(seed, 0.4, unavailable()),
  conflict: ({ seed }) => sometimes(seed, 0.4, conflict),
  gone: () => gone,
  'gone in stream': () => goneInStream(2),
  'cut events': () => cutEvents(2),
  'delayed events': () => delayedEvents(1000),
  partition: () => partition(1000),
  'stale reads': ({ revision }) => staleReads(() => revision),
} satisfies Record<string, (context: FaultContext) => Fault>;

/** Nothing reaches the server for a while, in milliseconds; when it does again, the server has forgotten where the watches were. */
function partition(ms: number): Fault {
  const until = Date.now() + ms;
  return (exchange) => (Date.now() < until ? resetBefore(exchange) : gone(exchange));
}

export type FaultName = keyof typeof faults;

export const faultNames = Object.keys(faults) as readonly FaultName[];

/** Faults that hurt nothing but watches, which otherwise stand as they are. */
const ofWatches: readonly FaultName[] = ['gone', 'gone in stream', 'cut events', 'delayed events', 'partition'];

/** Whether the connections that stand are cut when a fault begins. */
export function cutsFirst(name: FaultName, seed: number): boolean {
  return ofWatches.includes(name) || seed % 2 === 0;
}

/** A fault by its name. Leases are left alone: without them the operator gives up, which is another test's. */
export function faultOf(name: FaultName, context: FaultContext): Fault {
  return when(aboutWork, faults[name](context));
}
