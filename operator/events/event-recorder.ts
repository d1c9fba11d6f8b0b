import { LinkedList, type Linked } from '../collections/linked-list';
import type { EventOutcome } from '../metrics/operator-metrics';
import { systemClock, type Clock } from '../process/clock';
import type { Logger } from '../process/logger';
import {
  eventBody,
  eventKey,
  eventName,
  identityOf,
  subjectKey,
  withinLimits,
  writeEvent,
  type EventClient,
  type EventInput,
  type EventReporter,
  type EventSubject,
  type EventWrite,
  type EventWriteContext,
  type PendingEvent,
} from './event-writer';

export type { EventInput, EventSubject } from './event-writer';

/** Options of an `EventRecorder`. */
export interface EventRecorderOptions {
  readonly client: EventClient;
  readonly logger: Logger;
  /** Identifies this process, for example by the leader elector's identity. */
  readonly reportingInstance: string;
  /** @default 'kindred.dev/operator' */
  readonly reportingController?: string;
  /** @default 'kindred' */
  readonly fieldManager?: string;
  /** Called with the outcome of each write or dropped event; for `kindred_events_total`. @default nothing */
  readonly onOutcome?: (outcome: EventOutcome) => void;
  /** Limit of the writes per subject. @default a burst of 25, then one in 5 minutes */
  readonly spam?: TokenBucketOptions;
  /** How many events may wait to be written; further ones are dropped. @default 1000 */
  readonly maxQueued?: number;
  /** How many different events are remembered for deduplication. @default 4096 */
  readonly maxSeries?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/**
 * Records Kubernetes Events (`events.k8s.io/v1`) about the operator's objects.
 *
 * - The same event (subject's UID, type, reason, action, note) is created once. Its first repetition is
 *   patched in as a `series` at once; later ones are counted here and patched in at most every 6 minutes.
 *   After 30 quiet minutes the series ends.
 * - Per subject, writes are limited by a token bucket (25, then one in 5 minutes). Without a token, a new
 *   event is dropped, and a repetition is counted for a later patch.
 *
 * Guarantees: `record` returns at once and never throws; at most 1000 events wait, one request runs at a
 * time; a dropped or failed event is counted and logged, and never fails the reconcile. A terminating
 * namespace causes no warnings.
 *
 * Caveats: events are best effort. They are deduplicated within one process only; a restart starts over.
 */
export class EventRecorder {
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly reporter: EventReporter;
  private readonly buckets: TokenBuckets;
  private readonly known = new Map<string, Series>();
  private readonly queue = new LinkedList<Series>();
  private writing: Promise<void> | undefined;
  private abort = new AbortController();
  private wake: (() => void) | undefined;
  private flushing = false;
  private closed = false;
  private cancelSweep: (() => void) | undefined;

  constructor(private readonly options: EventRecorderOptions) {
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.buckets = new TokenBuckets(this.clock, options.spam);
    this.reporter = {
      reportingController: options.reportingController ?? 'kindred.dev/operator',
      reportingInstance: options.reportingInstance,
    };
  }

  /** Records an event about `subject`. Texts beyond the API server's limits are cut. */
  record(subject: EventSubject, input: EventInput): void {
    if (this.closed) return;
    const cut = withinLimits(input);
    const key = eventKey(subject, cut);
    const series = this.known.get(key);
    if (series === undefined) this.begin(key, subject, cut);
    else this.repeat(series);
  }

  /**
   * Writes all waiting events, including the counts of all series, and returns when that is done or
   * `deadlineMs` milliseconds have passed; then the rest is dropped. Nothing is retried meanwhile. Never
   * rejects.
   */
  async flush(deadlineMs: number): Promise<void> {
    this.flushing = true;
    for (const series of this.known.values()) {
      if (series.count > series.writtenCount) this.push(series);
    }
    this.wake?.();
    const cancel = this.clock.setTimer(() => this.dropQueued(`the ${deadlineMs} ms to flush had passed`), deadlineMs);
    await this.writing;
    cancel();
    this.flushing = false;
  }

  /** Closes the recorder: later events are ignored, the running request is aborted. Call `flush` first. */
  close(): void {
    this.closed = true;
    this.cancelSweep?.();
    this.cancelSweep = undefined;
    this.dropQueued('the recorder was closed');
    this.known.clear();
  }

  private begin(key: string, subject: EventSubject, input: EventInput): void {
    if (!this.buckets.take(subjectKey(subject))) {
      this.drop('dropped_spam', subject, input.reason);
      return;
    }
    if (this.queue.size >= (this.options.maxQueued ?? 1000)) {
      this.drop('dropped_full', subject, input.reason);
      return;
    }
    const wallMs = this.clock.wallMs();
    const body = eventBody(subject, input, this.reporter, eventName(subject, wallMs, this.random), wallMs);
    const series = new Series(key, identityOf(subject), body, this.clock.monotonicMs(), wallMs);
    this.known.set(key, series);
    this.forgetBeyondLimit();
    this.push(series);
    this.cancelSweep ??= this.clock.setTimer(() => this.sweep(), sweepMs, { background: true });
  }

  private repeat(series: Series): void {
    series.count++;
    series.lastSeenMs = this.clock.monotonicMs();
    series.lastSeenWallMs = this.clock.wallMs();
    // Deleted and set again, so that the map is in order of use.
    this.known.delete(series.key);
    this.known.set(series.key, series);
    this.pushIfDue(series);
  }

  private pushIfDue(series: Series): void {
    if (series.queued || series.count <= series.writtenCount) return;
    const first = series.writtenCount === 1;
    if (!first && this.clock.monotonicMs() - series.writtenAtMs < seriesIntervalMs) return;
    if (this.queue.size >= (this.options.maxQueued ?? 1000)) return;
    if (this.buckets.take(subjectKey(series.subject))) this.push(series);
  }

  private push(series: Series): void {
    if (series.queued) return;
    series.queued = true;
    this.queue.push(series);
    this.writing ??= this.writeAll();
  }

  private async writeAll(): Promise<void> {
    // After the caller's microtask: `record` only queues.
    await Promise.resolve();
    try {
      for (let series = this.queue.shift(); series !== undefined; series = this.queue.shift()) {
        const result = await this.writeOne(series);
        series.queued = false;
        this.settle(series, result);
      }
    } finally {
      // In the same microtask in which the queue was found empty: a later push starts a new loop.
      this.writing = undefined;
    }
  }

  private async writeOne(series: Series): Promise<EventWrite> {
    for (let tries = 1; ; tries++) {
      this.abort = new AbortController();
      const result = await writeEvent(series, this.context(series), tries > 1);
      if (result.end !== 'later' || tries >= maxTries || this.flushing || this.closed) return result;
      this.options.logger.debug({ err: result.error, tries }, 'an event could not be written; trying again');
      await this.pause(retryMs * (1 + 0.25 * this.random()));
    }
  }

  private context(series: Series): EventWriteContext {
    const { client, fieldManager = 'kindred' } = this.options;
    return {
      client,
      options: { fieldManager, signal: this.abort.signal, timeoutMs: requestTimeoutMs },
      freshName: () => eventName(series.subject, this.clock.wallMs(), this.random),
    };
  }

  private settle(series: Series, result: EventWrite): void {
    series.writtenAtMs = this.clock.monotonicMs();
    if (result.end === 'written') {
      series.writtenCount = result.count;
      this.options.onOutcome?.('written');
      this.pushIfDue(series);
      return;
    }
    // An event that was never stored is removed, so that its next occurrence tries again; a series is patched
    // later.
    if (!series.stored && this.known.get(series.key) === series) this.known.delete(series.key);
    if (result.end === 'gone') {
      this.drop('dropped_terminating', series.subject, String(series.body['reason']));
      return;
    }
    this.options.onOutcome?.('failed');
    const { namespace, name } = series.subject.metadata;
    const about = { kind: series.subject.kind, namespace, name, reason: series.body['reason'] };
    this.options.logger.warn({ err: result.error, ...about }, 'an event could not be written');
  }

  private sweep(): void {
    const now = this.clock.monotonicMs();
    for (const series of this.known.values()) {
      this.pushIfDue(series);
      if (!series.queued && now - series.lastSeenMs >= seriesEndMs) this.known.delete(series.key);
    }
    const again = this.known.size > 0;
    this.cancelSweep = again ? this.clock.setTimer(() => this.sweep(), sweepMs, { background: true }) : undefined;
  }

  private forgetBeyondLimit(): void {
    if (this.known.size <= (this.options.maxSeries ?? 4096)) return;
    for (const key of this.known.keys()) {
      this.known.delete(key);
      return;
    }
  }

  private drop(outcome: EventOutcome, subject: EventSubject, reason: string): void {
    this.options.onOutcome?.(outcome);
    const { namespace, name } = subject.metadata;
    this.options.logger.debug({ outcome, kind: subject.kind, namespace, name, reason }, 'an event was dropped');
  }

  private dropQueued(why: string): void {
    let dropped = 0;
    for (let series = this.queue.shift(); series !== undefined; series = this.queue.shift()) {
      series.queued = false;
      dropped++;
    }
    if (dropped > 0) this.options.logger.warn({ dropped }, `events were dropped: ${why}`);
    this.abort.abort(new Error(`writing events ended: ${why}`));
    this.wake?.();
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.clock.setTimer(() => this.wake?.(), ms, { background: true });
      this.wake = () => {
        cancel();
        this.wake = undefined;
        resolve();
      };
    });
  }
}

/** The interval between two patches of one series, in milliseconds, as in client-go. */
const seriesIntervalMs = 6 * 60_000;
/**
 * A series without an occurrence for this long ends, in milliseconds: the next occurrence is a new event.
 * Half of an event's usual time to live on the server.
 */
const seriesEndMs = 30 * 60_000;
const sweepMs = 60_000;
const requestTimeoutMs = 10_000;
/**
 * As in client-go: wait 10 s, up to a quarter more at random, between tries; the other events wait meanwhile.
 */
const retryMs = 10_000;
const maxTries = 5;

/** One event and its repetitions. */
class Series implements PendingEvent, Linked<Series> {
  previous: Series | undefined;
  next: Series | undefined;
  count = 1;
  writtenCount = 0;
  writtenAtMs = 0;
  stored = false;
  queued = false;

  constructor(
    readonly key: string,
    readonly subject: EventSubject,
    public body: PendingEvent['body'],
    public lastSeenMs: number,
    public lastSeenWallMs: number,
  ) {}
}

/** Options of `TokenBuckets`. */
interface TokenBucketOptions {
  /** The size of a bucket, which is full at the start. @default 25 */
  readonly burst?: number;
  /** The time in which one token is added, in milliseconds. @default 300000 (5 min) */
  readonly refillMs?: number;
  /**
   * How many buckets are kept; beyond that the least recently used one is dropped (its key then starts full).
   * @default 4096
   */
  readonly maxKeys?: number;
}

interface Bucket {
  tokens: number;
  readAt: number;
}

/** One token bucket per key. The defaults are those of client-go's event spam filter, per object. */
export class TokenBuckets {
  private readonly buckets = new Map<string, Bucket>();
  private readonly burst: number;
  private readonly refillMs: number;
  private readonly maxKeys: number;

  constructor(
    private readonly clock: Clock,
    options: TokenBucketOptions = {},
  ) {
    this.burst = options.burst ?? 25;
    this.refillMs = options.refillMs ?? 300_000;
    this.maxKeys = options.maxKeys ?? 4096;
  }

  /** Takes one token of the key; false when it has none. */
  take(key: string): boolean {
    const now = this.clock.monotonicMs();
    const old = this.buckets.get(key);
    const tokens =
      old === undefined ? this.burst : Math.min(this.burst, old.tokens + (now - old.readAt) / this.refillMs);
    // Deleted and set again, so that the map is in order of use.
    this.buckets.delete(key);
    this.buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, readAt: now });
    if (this.buckets.size > this.maxKeys) this.forgetOldest();
    return tokens >= 1;
  }

  private forgetOldest(): void {
    for (const key of this.buckets.keys()) {
      this.buckets.delete(key);
      return;
    }
  }
}
