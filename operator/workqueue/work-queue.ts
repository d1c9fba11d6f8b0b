import { DelayHeap, type Delayed } from '../collections/delay-heap';
import { LinkedList, type Linked } from '../collections/linked-list';
import { MAX_TIMER_MS, systemClock, type Clock } from '../process/clock';
import { RateLimiter, type RateLimiterOptions } from './rate-limiter';

/**
 * How urgent a key is. `user`: somebody changed something. `resync`: the initial list, a periodic resync, an audit.
 * A ready `user` key is always taken before a ready `resync` key.
 */
export type Priority = 'user' | 'resync';

/** Options of a `WorkQueue`. */
interface WorkQueueOptions {
  /** @default systemClock */
  readonly clock?: Clock;
  /** Where the queue reports to. @default nothing is reported */
  readonly metrics?: QueueMetrics;
  /** Of `addRateLimited`. @default 5 ms..1000 s, shortened at random by up to a fifth */
  readonly backoff?: RateLimiterOptions;
}

/**
 * A level-triggered queue of keys: it says *that* an object needs a reconcile, never what happened to it.
 *
 * Guarantees:
 * - A key waits at most once, however often it is added, and never runs twice at once; a key added while it
 *   runs, runs again afterwards. No add is lost: every one is followed by a run that starts after it (unless
 *   the queue is closed first).
 * - A ready `user` key goes before every ready `resync` key; within a priority it is first in, first out, by
 *   the moment the key joined that priority.
 * - Adds merge as in controller-runtime's priority queue: the higher priority and the earlier time win. There
 *   is one waiting entry per key, so a run **consumes** a pending `addAfter`: a caller that wants periodic
 *   runs calls it in each run. An `addAfter` called during the run belongs to the next one and stays.
 * - Adding, taking and finishing are O(1), delayed keys O(log n); all delayed keys share one timer.
 *
 * Caveats: a steady flood of `user` keys starves `resync` keys.
 */
export class WorkQueue<K extends string> {
  readonly clock: Clock;
  private readonly metrics: QueueMetrics | undefined;
  private readonly rateLimiter: RateLimiter<K>;
  private readonly pending = new Map<K, Entry<K>>();
  private readonly runs = new Map<K, Run>();
  private readonly ready: Readonly<Record<Priority, LinkedList<Entry<K>>>> = {
    user: new LinkedList(),
    resync: new LinkedList(),
  };
  private readonly delayed = new DelayHeap<Entry<K>>();
  private sequence = 0;
  private timer: { readonly at: number; readonly cancel: () => void } | undefined;
  private listener: (() => void) | undefined;
  private closed = false;

  constructor(options: WorkQueueOptions = {}) {
    this.clock = options.clock ?? systemClock;
    this.metrics = options.metrics;
    this.rateLimiter = new RateLimiter(options.backoff);
    this.metrics?.observeUnfinished(() => this.unfinished());
  }

  /** Keys that are ready, including those that wait for their own run to end. */
  get depth(): number {
    return this.pending.size - this.delayed.size;
  }

  /** Keys whose delay is not over. */
  get delayedCount(): number {
    return this.delayed.size;
  }

  /** Keys that run right now. */
  get running(): readonly K[] {
    return [...this.runs.keys()];
  }

  /**
   * Requests a run as soon as possible. Ends a pending delay of the key.
   *
   * @param priority default: the one the key runs with right now, else `user`.
   */
  add(key: K, priority?: Priority): void {
    this.enqueue(key, 0, priority);
  }

  /**
   * Requests a run after `ms` milliseconds; the earliest of several wins, and a key that is ready already
   * stays ready. Zero or less is `add`.
   *
   * @param priority default: the one the key runs with right now, else `user`.
   * @throws RangeError when `ms` is not a finite number.
   */
  addAfter(key: K, ms: number, priority?: Priority): void {
    if (!Number.isFinite(ms)) {
      throw new RangeError(`cannot queue "${key}" after ${ms} ms: the delay must be a finite number of milliseconds`);
    }
    this.enqueue(key, ms, priority);
  }

  /**
   * Requests a run after the key's backoff, and counts a failure, unless the run came before the previous
   * delay was over.
   *
   * @returns the delay, in milliseconds. The run may come earlier, if something else requests it.
   */
  addRateLimited(key: K, priority?: Priority): number {
    const delay = this.rateLimiter.next(key, this.clock.monotonicMs());
    this.enqueue(key, delay, priority);
    return delay;
  }

  /** Resets the backoff of a key that succeeded, or is given up. Does not take it out of the queue. */
  forget(key: K): void {
    this.rateLimiter.forget(key);
  }

  /** How many failures `addRateLimited` has counted since the last `forget`. */
  failures(key: K): number {
    return this.rateLimiter.failures(key);
  }

  /**
   * Hands out the next ready key; it counts as running until `done`. Undefined when none is ready.
   *
   * @param least leave keys of a lower priority where they are. @default 'resync', the lowest
   */
  take(least: Priority = 'resync'): Taken<K> | undefined {
    if (this.closed) return undefined;
    const entry = this.ready.user.shift() ?? (least === 'resync' ? this.ready.resync.shift() : undefined);
    if (entry === undefined) return undefined;
    const now = this.clock.monotonicMs();
    this.pending.delete(entry.key);
    this.runs.set(entry.key, { startedAt: now, priority: entry.priority });
    this.metrics?.taken(entry.priority, (now - entry.readyAt) / 1000);
    return { key: entry.key, priority: entry.priority };
  }

  /** The keys that are taken next, at most so many, unless more urgent ones are added. */
  next(most: number): readonly K[] {
    const keys: K[] = [];
    if (this.closed) return keys;
    for (const list of [this.ready.user, this.ready.resync]) {
      for (const { key } of list) {
        if (keys.length === most) return keys;
        keys.push(key);
      }
    }
    return keys;
  }

  /**
   * The run of a taken key ended, well or not.
   *
   * @throws Error when the key does not run: a bug of the caller that would let it run twice at once.
   */
  done(key: K): void {
    const run = this.runs.get(key);
    if (run === undefined) {
      throw new Error(`work queue: done("${key}"), but this key is not running; call done once for each key taken`);
    }
    this.runs.delete(key);
    this.metrics?.finished((this.clock.monotonicMs() - run.startedAt) / 1000);
    const entry = this.pending.get(key);
    if (entry?.place === 'parked') this.place(entry);
  }

  /**
   * Sets the function that is called when a key becomes ready. There is only one; it must not take keys in
   * the call itself.
   *
   * @returns a function that removes the listener.
   * @throws Error when there is one already.
   */
  onReady(listener: () => void): () => void {
    if (this.listener !== undefined) {
      throw new Error('work queue: it has a listener already; run the workers of a queue once');
    }
    this.listener = listener;
    return () => {
      this.listener = undefined;
    };
  }

  /** Drops what waits, ignores what is added from now on, and stops the timer. Running keys may still be `done`. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
    this.timer = undefined;
    this.delayed.clear();
    this.pending.clear();
  }

  private enqueue(key: K, delayMs: number, wanted: Priority | undefined): void {
    if (this.closed) return;
    const priority = wanted ?? this.runs.get(key)?.priority ?? 'user';
    if (delayMs > 0) this.metrics?.retried();
    const entry = this.pending.get(key);
    if (entry === undefined) this.insert(key, delayMs, priority);
    else this.merge(entry, delayMs, priority);
  }

  private insert(key: K, delayMs: number, priority: Priority): void {
    const readyAt = this.clock.monotonicMs() + delayMs;
    const sequence = this.sequence++;
    const links = { previous: undefined, next: undefined, heapIndex: -1 };
    const entry: Entry<K> = { key, priority, place: 'delayed', readyAt, sequence, ...links };
    this.pending.set(key, entry);
    if (delayMs > 0) this.delay(entry, readyAt);
    else this.makeReady(entry);
  }

  private merge(entry: Entry<K>, delayMs: number, priority: Priority): void {
    if (priority === 'user' && entry.priority === 'resync') this.raise(entry);
    if (entry.place !== 'delayed') return;
    const readyAt = this.clock.monotonicMs() + delayMs;
    if (delayMs > 0 && readyAt >= entry.readyAt) return;
    this.delayed.remove(entry);
    if (delayMs > 0) this.delay(entry, readyAt);
    else this.makeReady(entry);
  }

  private raise(entry: Entry<K>): void {
    if (entry.place === 'ready') {
      this.ready.resync.remove(entry);
      this.ready.user.push(entry);
      // A worker may be free that does not take the lower priority.
      this.listener?.();
    }
    if (entry.place !== 'delayed') this.metrics?.moved('resync', 'user');
    entry.priority = 'user';
  }

  private delay(entry: Entry<K>, readyAt: number): void {
    entry.readyAt = readyAt;
    this.delayed.push(entry);
    this.arm();
  }

  private makeReady(entry: Entry<K>): void {
    entry.readyAt = this.clock.monotonicMs();
    this.metrics?.added(entry.priority);
    this.place(entry);
  }

  private place(entry: Entry<K>): void {
    if (this.runs.has(entry.key)) {
      entry.place = 'parked';
      return;
    }
    entry.place = 'ready';
    this.ready[entry.priority].push(entry);
    this.listener?.();
  }

  /** Sets the one timer to the first due time, if it is not set to that or earlier already. */
  private arm(): void {
    const first = this.delayed.peek();
    if (first === undefined) return;
    if (this.timer !== undefined) {
      if (this.timer.at <= first.readyAt) return;
      this.timer.cancel();
    }
    const ms = Math.ceil(Math.max(0, first.readyAt - this.clock.monotonicMs()));
    // A timer that fires early (rounding, or Node's limit of 24 days) finds nothing due and is set again.
    const cancel = this.clock.setTimer(() => this.promote(), Math.min(ms, MAX_TIMER_MS));
    this.timer = { at: first.readyAt, cancel };
  }

  private promote(): void {
    this.timer = undefined;
    const now = this.clock.monotonicMs();
    for (let entry = this.delayed.peek(); entry !== undefined && entry.readyAt <= now; entry = this.delayed.peek()) {
      this.delayed.remove(entry);
      this.makeReady(entry);
    }
    this.arm();
  }

  private unfinished(): UnfinishedWork {
    const now = this.clock.monotonicMs();
    let total = 0;
    let longest = 0;
    for (const run of this.runs.values()) {
      total += now - run.startedAt;
      longest = Math.max(longest, now - run.startedAt);
    }
    return { totalSeconds: total / 1000, longestSeconds: longest / 1000 };
  }
}

/** A key handed out by `take`. */
interface Taken<K extends string> {
  readonly key: K;
  /** The highest priority the key was added with since it last ran. */
  readonly priority: Priority;
}

/** `ready`: in a list, may be taken. `parked`: ready, but the key runs right now. `delayed`: in the heap. */
type Place = 'ready' | 'parked' | 'delayed';

interface Entry<K extends string> extends Linked<Entry<K>>, Delayed {
  readonly key: K;
  priority: Priority;
  place: Place;
}

interface Run {
  readonly startedAt: number;
  readonly priority: Priority;
}

/**
 * What a queue reports to its metrics. The calls match, one for one, what controller-runtime's priority queue
 * reports: `added` only when a key becomes ready (a delayed key does not count into the depth), `retried` at
 * every delayed add.
 */
export interface QueueMetrics {
  added(priority: Priority): void;
  /** A ready key's priority was raised. */
  moved(from: Priority, to: Priority): void;
  /** A ready key was taken after waiting this many seconds. */
  taken(priority: Priority, waitedSeconds: number): void;
  /** A run ended after this many seconds. */
  finished(workedSeconds: number): void;
  retried(): void;
  /** Called once by the queue; `read` is evaluated at every scrape. */
  observeUnfinished(read: () => UnfinishedWork): void;
}

/** How long the running keys have been running, in seconds. */
export interface UnfinishedWork {
  /** The sum over all running keys. */
  readonly totalSeconds: number;
  /** The longest-running key's. */
  readonly longestSeconds: number;
}
