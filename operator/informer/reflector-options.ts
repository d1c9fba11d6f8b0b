import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../client/api-client';
import type { ObjectCache } from './object-cache';

/** Options of a `Reflector`. */
export interface ReflectorOptions {
  readonly client: Pick<ApiClient, 'list' | 'watch'>;
  readonly type: ResourceType;
  readonly cache: ObjectCache;
  /** Reflects one namespace only. @default all namespaces */
  readonly namespace?: string;
  /** Reflects only objects that match. @default all objects */
  readonly labelSelector?: string;
  /**
   * Called with every failure, from which the reflector then recovers by itself, and with an
   * `UndecodableObjectError` for each object that it skips. For logs and metrics; it must not throw.
   */
  readonly onError?: (error: unknown) => void;
  /**
   * Called when the server does not have the type, and when it has been listed after that. It must not throw.
   */
  readonly onMissing?: (isMissing: boolean) => void;
  /** Lists in pages even where the server supports streaming lists. @default false */
  readonly pagedList?: boolean;
  /** Objects per page. @default 500 */
  readonly pageSize?: number;
  /**
   * A watch on which nothing arrives for this long is opened again, in milliseconds. API servers send a
   * bookmark every minute, but none for a type that has not changed since they started.
   * @default 70000
   */
  readonly idleTimeoutMs?: number;
  /**
   * After how many seconds the server shall end a watch: a random number in this range.
   * @default [300, 600]
   */
  readonly watchTimeoutSeconds?: readonly [number, number];
  /** Delays after failures. */
  readonly backoff?: ReflectorBackoffOptions;
  /** A watch that the server ends sooner than this counts as a failure, in milliseconds. @default 1000 */
  readonly minWatchMs?: number;
  /**
   * After a watch that lasted this long, delays start at the shortest again, in milliseconds.
   * @default 10000
   */
  readonly stableAfterMs?: number;
  /** The time, in milliseconds since the epoch. @default Date.now */
  readonly now?: () => number;
}

/** The state of a reflector, for readiness, metrics and messages. */
export interface ReflectorState {
  /** True from the first complete list on. */
  readonly synced: boolean;
  /** True while a watch is open, and between a planned end and the next watch. */
  readonly watching: boolean;
  /** When something last arrived, in milliseconds since the epoch; 0 before that. */
  readonly lastActivity: number;
  /** The version that the cache has reached; empty before the first list. */
  readonly resourceVersion: string;
  /** How many lists were taken over. */
  readonly lists: number;
  /** The server does not have the type (404), for example because its CRD is not installed. The cache stays as it was until the next list. */
  readonly missing: boolean;
  /** The last error, until a request succeeds again. */
  readonly lastError?: { readonly error: unknown; readonly at: number };
}

/** Options of a `ReflectorBackoff`. */
interface ReflectorBackoffOptions {
  /** The first delay, in milliseconds. @default 200 */
  readonly initialMs?: number;
  /** The longest delay, in milliseconds. @default 30000 */
  readonly maxMs?: number;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/** Doubling delays, each spread over its upper half so that many clients do not retry at the same time. */
export class ReflectorBackoff {
  private failures = 0;
  private readonly initialMs: number;
  private readonly maxMs: number;
  private readonly random: () => number;

  constructor(options: ReflectorBackoffOptions = {}) {
    this.initialMs = options.initialMs ?? 200;
    this.maxMs = options.maxMs ?? 30_000;
    this.random = options.random ?? Math.random;
  }

  /** How often `next` was called since the last reset. */
  get count(): number {
    return this.failures;
  }

  /** The delay before the next attempt, in milliseconds. */
  next(): number {
    const full = Math.min(this.maxMs, this.initialMs * 2 ** this.failures);
    this.failures++;
    return full * (0.5 + this.random() * 0.5);
  }

  reset(): void {
    this.failures = 0;
  }
}
