import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import { systemClock, type Clock } from '../process/clock';
import type { Logger } from '../process/logger';
import {
  candidateJitter,
  electionTimes,
  expiryOf,
  heldRecord,
  isKeptForAnother,
  leaseType,
  preferredHolderOf,
  processIdentity,
  recordOf,
  releaseLease,
  withPreferredHolder,
  withRecord,
  type ElectionTimes,
  type ObservedLease,
} from './lease';

/** The requests of an election: RBAC `get`, `create` and `update` on `leases` in its namespace. */
type LeaseClient = Pick<ApiClient, 'get' | 'create' | 'update'>;

/** Options of a `LeaderElector`. */
export interface LeaderElectionOptions extends Partial<ElectionTimes> {
  readonly client: LeaseClient;
  readonly leaseName: string;
  readonly namespace: string;
  readonly logger: Logger;
  /** Called once, when this process becomes leader. */
  readonly onElected: () => void;
  /**
   * Called at most once, when this process has lost the leadership; not after `stop`. The process must stop
   * its work.
   */
  readonly onLost: (error: LeadershipLostError) => void;
  /**
   * A name for which whoever holds the Lease is asked to give it up. Others do not take it until processes of this name have had the
   * time to, now and between two of them. As a leader, this process gives the Lease up for nobody.
   * @default none
   */
  readonly preferred?: string;
  /**
   * Called at most once, when this leader is asked to give the Lease up, with the name for which. The leader then should end its work and
   * call `stop`; until then it leads.
   * @default nothing: it goes on
   */
  readonly onAsked?: (name: string) => void;
  /** Called whenever the Lease gets another holder that is not this process. @default nothing */
  readonly onNewLeader?: (identity: string) => void;
  /** Called with every change of leadership, and once with false at the start; for `leader_election_master_status`. */
  readonly onStatus?: (leads: boolean) => void;
  /** Unique among all processes that ever ran. @default processIdentity() */
  readonly identity?: string;
  /** @default 'kindred' */
  readonly fieldManager?: string;
  /** @default systemClock */
  readonly clock?: Clock;
  /** A number in [0, 1). @default Math.random */
  readonly random?: () => number;
}

/**
 * Elects one leader among all replicas by a Lease, with client-go's algorithm.
 *
 * - A candidate takes the Lease when it is free, or when its record has not changed for its
 *   `leaseDurationSeconds` **as measured by the candidate's own monotonic clock since it first read that
 *   record**. Timestamps in the Lease are never compared with our clock, so clocks of different machines may
 *   differ by any amount (their *rates* by 15/10).
 * - Every update carries the resourceVersion that it is based on: of two candidates, one gets a conflict.
 * - The leader renews every `retryPeriodMs`, first based on the Lease as it knows it, and after any failure
 *   based on a new read.
 *
 * **The bound.** The leader leads until `renewDeadlineMs` after the **start** of its last successful renewal.
 * The server stored that renewal after its start, and others wait `leaseDurationMs` from when they read it.
 * So at the defaults 5 s lie between the moment when this process rejects its own writes and the earliest
 * moment when another process may write. Counting from the response instead, or up to `leaseDurationMs`,
 * would leave no time for running requests.
 *
 * Guarantees: `isLeaderNow` reads clocks and nothing else, so it is correct at once after the process was
 * stopped for longer than the lease, before any timer fired. A lost leadership is never regained. `onElected`
 * comes before `onLost`; each is called at most once, in a microtask, so that an exception in it is an
 * uncaught error and not a failed renewal.
 *
 * Assumptions: a write takes effect within 5 s (`leaseDurationMs - renewDeadlineMs`) of its check: bound its
 * timeout by that.
 *
 * Caveats: the API server does not fence writes by Lease; nothing here stops a request that hangs on the way
 * for longer. A user who deletes or edits the Lease can cause two leaders for up to `retryPeriodMs`. While
 * the whole machine is suspended, Linux' monotonic clock stops; therefore a wall clock that ran past the
 * deadline makes `isLeaderNow` false too, until the next renewal succeeds (a step of the wall clock costs a
 * pause of one `retryPeriodMs`, never the Lease).
 *
 * Source: client-go `tools/leaderelection`, KEP-589.
 */
export class LeaderElector {
  readonly identity: string;
  private readonly times: ElectionTimes;
  private readonly clock: Clock;
  private readonly random: () => number;
  private readonly where: string;
  private state: State = 'idle';
  private observed: ObservedLease | undefined;
  private reportedHolder = '';
  /** The start of the last successful renewal. */
  private renewed: Instant | undefined;
  /** True from before the first write that may have made this process the holder. */
  private mayHold = false;
  private attempt: Promise<void> = Promise.resolve();
  /** A preferred candidate has asked for the Lease, and `onAsked` was called. */
  private wasAsked = false;
  /** Another attempt follows the one under way at once. */
  private triesNext = false;
  private abort = new AbortController();
  private cancelTick: (() => void) | undefined;
  private cancelDeadline: (() => void) | undefined;

  /** @throws RangeError when the times cannot be safe; see `electionTimes`. */
  constructor(private readonly options: LeaderElectionOptions) {
    this.times = electionTimes(options);
    this.identity = options.identity ?? processIdentity();
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.where = `Lease ${options.namespace}/${options.leaseName}`;
  }

  /**
   * Starts the election, which goes on until this process is elected or stopped, or has lost the leadership.
   *
   * @throws Error when called twice.
   */
  start(): void {
    if (this.state !== 'idle') throw new Error(`leader election on ${this.where} was started already; start it once`);
    this.state = 'candidate';
    this.options.onStatus?.(false);
    this.options.logger.info({ lease: this.where, identity: this.identity }, 'waiting to become leader');
    this.tick();
  }

  /**
   * Makes a candidate look at the Lease at once instead of after `retryPeriodMs`: somebody knows that it was given up. Of
   * any other process it changes nothing.
   */
  tryNow(): void {
    if (this.triesNext) return;
    this.triesNext = true;
    // After an attempt that is under way, which may have read the Lease before it was given up.
    void this.attempt.then(() => {
      this.triesNext = false;
      if (this.state !== 'candidate') return;
      this.cancelTick?.();
      this.tick();
    });
  }

  /** Whether this process may write right now. Cheap: to be called before each write. */
  isLeaderNow(): boolean {
    return this.remainingMs() > 0;
  }

  /**
   * For how many more milliseconds this process leads even if no renewal succeeds; 0 when it does not lead.
   */
  remainingMs(): number {
    if (this.state !== 'leader' || this.renewed === undefined) return 0;
    const monotonic = this.clock.monotonicMs() - this.renewed.monotonicMs;
    const wall = this.clock.wallMs() - this.renewed.wallMs;
    return Math.max(0, this.times.renewDeadlineMs - Math.max(monotonic, wall));
  }

  /** @throws NotLeaderError when this process may not write right now. */
  assertLeader(): void {
    if (this.isLeaderNow()) return;
    const why: Record<State, string> = {
      idle: 'the election has not been started',
      candidate: 'another process leads, or none yet',
      leader: `the last renewal began more than ${this.times.renewDeadlineMs} ms ago, so another may lead by now`,
      lost: 'leadership was lost',
      stopped: 'the election was stopped',
    };
    throw new NotLeaderError(
      `refused to write: ${this.identity} does not lead (${this.where}): ${why[this.state]}; stop the work, do not retry here`,
    );
  }

  /**
   * Stops leading at once, and releases the Lease so that another process need not wait for its end. To be
   * called **after** all work ended. Never rejects: a Lease that cannot be released expires, which is logged.
   *
   * @param options.release false when work of this process may still be running: the Lease then expires
   * instead. @default true
   */
  async stop({ release = true }: { readonly release?: boolean } = {}): Promise<void> {
    const before = this.state;
    if (before === 'stopped') return;
    this.state = 'stopped';
    this.endTimers();
    if (before === 'leader') this.options.onStatus?.(false);
    await this.attempt;
    if (release && before !== 'lost' && this.mayHold) await this.release();
  }

  private tick(): void {
    this.attempt = this.attemptOnce().then(() => {
      if (this.state !== 'candidate' && this.state !== 'leader') return;
      this.cancelTick = this.clock.setTimer(() => this.tick(), this.waitMs());
    });
  }

  /** How long to wait until the next attempt. */
  private waitMs(): number {
    const { retryPeriodMs } = this.times;
    if (this.state === 'leader') return retryPeriodMs;
    // Whoever was asked may give the Lease up at any time.
    return this.options.preferred === undefined
      ? retryPeriodMs * (1 + candidateJitter * this.random())
      : retryPeriodMs / 4;
  }

  /** One attempt to acquire or renew the Lease. Never rejects. */
  private async attemptOnce(): Promise<void> {
    if (this.deadlinePassed()) {
      this.lose(`no renewal succeeded within ${this.times.renewDeadlineMs} ms`);
      return;
    }
    this.abort = new AbortController();
    // As in controller-runtime's election client; passing the deadline aborts as well.
    const timeoutMs = this.times.renewDeadlineMs / 2;
    const { signal, cancel } = this.limit(this.abort, timeoutMs);
    try {
      await this.acquireOrRenew(signal, timeoutMs);
    } catch (error) {
      if (this.state === 'stopped' || this.state === 'lost') return;
      const message =
        this.state === 'leader' ? 'renewing leadership failed; trying again' : 'standing for election failed';
      this.options.logger.warn({ err: error, lease: this.where }, message);
    } finally {
      cancel();
    }
  }

  private async acquireOrRenew(signal: AbortSignal, timeoutMs: number): Promise<void> {
    if (this.state === 'leader' && this.observed !== undefined) {
      try {
        await this.write(this.observed, signal, timeoutMs);
        return;
      } catch (error) {
        if (signal.aborted || !(error instanceof ApiError || error instanceof TransportError)) throw error;
        // The renewal may have been stored, or the Lease may have another holder by now: read it.
        this.options.logger.debug(
          { err: error, lease: this.where },
          'renewing blindly failed; reading the Lease first',
        );
      }
    }
    const now = this.clock.monotonicMs();
    const { leaseName: name, namespace } = this.options;
    const lease = await this.options.client.get(leaseType, { name, namespace }, { ...urgently, signal, timeoutMs });
    signal.throwIfAborted();
    if (lease === undefined) this.observed = undefined;
    const observed = lease === undefined ? undefined : this.observe(lease);
    if (observed !== undefined && observed.record.holderIdentity !== this.identity) {
      if (this.state === 'leader') {
        this.lose(`the Lease is held by ${observed.record.holderIdentity || 'nobody'}`);
        return;
      }
      if (observed.record.holderIdentity !== '' && now < expiryOf(observed, this.times.leaseDurationMs)) {
        await this.ask(observed, signal, timeoutMs);
        return;
      }
      if (isKeptForAnother(observed, { preferred: this.options.preferred, now, ...this.times })) return;
    }
    await this.write(observed, signal, timeoutMs);
  }

  /** Asks the holder to give the Lease up, unless somebody else has. */
  private async ask({ lease }: ObservedLease, signal: AbortSignal, timeoutMs: number): Promise<void> {
    const { client, preferred, fieldManager = 'kindred' } = this.options;
    if (preferred === undefined || preferredHolderOf(lease) !== '') return;
    const body = withPreferredHolder(lease, preferred);
    const stored = await client.update(leaseType, body, { ...urgently, fieldManager, signal, timeoutMs });
    signal.throwIfAborted();
    this.observe(stored);
  }

  /** A leader has read its Lease. */
  private answer(lease: KubeObject): void {
    const { onAsked, preferred: own } = this.options;
    const name = preferredHolderOf(lease);
    if (this.state !== 'leader' || name === '' || own !== undefined || this.wasAsked || onAsked === undefined) return;
    this.wasAsked = true;
    queueMicrotask(() => onAsked(name));
  }

  /** Creates or updates the Lease so that we hold it. */
  private async write(observed: ObservedLease | undefined, signal: AbortSignal, timeoutMs: number): Promise<void> {
    const start = this.now();
    const { client, leaseName: name, namespace, fieldManager = 'kindred' } = this.options;
    const record = heldRecord(this.identity, this.times.leaseDurationMs, start.wallMs, observed?.record);
    const blank: KubeObject = { apiVersion: leaseType.apiVersion, kind: leaseType.kind, metadata: { name, namespace } };
    const lease = observed?.lease ?? blank;
    const isMine = observed?.record.holderIdentity === this.identity;
    const { preferred } = this.options;
    const isAsIs = isMine || preferredHolderOf(lease) === (preferred ?? '');
    const body = withRecord(isAsIs ? lease : withPreferredHolder(lease, preferred), record);
    this.mayHold = true;
    const options = { ...urgently, fieldManager, signal, timeoutMs };
    const stored = await (observed === undefined
      ? client.create(leaseType, body, options)
      : client.update(leaseType, body, options));
    signal.throwIfAborted();
    this.observe(stored);
    this.onRenewed(start);
    this.answer(stored);
  }

  private observe(lease: KubeObject): ObservedLease {
    const record = recordOf(lease);
    const raw = JSON.stringify(record);
    const sinceMs = this.observed?.raw === raw ? this.observed.sinceMs : this.clock.monotonicMs();
    this.observed = { lease, record, raw, sinceMs };
    if (record.holderIdentity !== this.reportedHolder) {
      this.reportedHolder = record.holderIdentity;
      if (record.holderIdentity !== '' && record.holderIdentity !== this.identity) {
        this.options.logger.info({ lease: this.where, holder: record.holderIdentity }, 'another process leads');
        this.options.onNewLeader?.(record.holderIdentity);
      }
    }
    return this.observed;
  }

  /** A write that began at `start` was stored. */
  private onRenewed(start: Instant): void {
    if (this.deadlinePassed()) {
      this.lose('the answer to the renewal came after the deadline');
      return;
    }
    const untilDeadline = start.monotonicMs + this.times.renewDeadlineMs - this.clock.monotonicMs();
    // The write took too long to lead (the process was stopped meanwhile): the next attempt finds us as the
    // holder and renews.
    if (untilDeadline <= 0) return;
    this.renewed = start;
    this.cancelDeadline?.();
    this.cancelDeadline = this.clock.setTimer(() => this.watchDeadline(), untilDeadline);
    if (this.state !== 'candidate') return;
    this.state = 'leader';
    this.options.logger.info({ lease: this.where, identity: this.identity }, 'became leader');
    this.options.onStatus?.(true);
    queueMicrotask(() => {
      if (this.state === 'leader') this.options.onElected();
    });
  }

  private watchDeadline(): void {
    if (this.state !== 'leader' || this.renewed === undefined) return;
    const left = this.renewed.monotonicMs + this.times.renewDeadlineMs - this.clock.monotonicMs();
    if (left > 0) this.cancelDeadline = this.clock.setTimer(() => this.watchDeadline(), Math.ceil(left));
    else this.lose(`no renewal succeeded within ${this.times.renewDeadlineMs} ms`);
  }

  private lose(why: string): void {
    if (this.state !== 'leader') return;
    this.state = 'lost';
    this.endTimers();
    const error = new LeadershipLostError(
      `lost leadership (${this.where}): ${why}; ${this.identity} stops its work, a restart stands for election again`,
    );
    this.options.logger.error({ err: error }, 'lost leadership');
    this.options.onStatus?.(false);
    queueMicrotask(() => this.options.onLost(error));
  }

  private async release(): Promise<void> {
    const timeoutMs = this.times.renewDeadlineMs / 2;
    const { client, leaseName: name, namespace, fieldManager = 'kindred', logger } = this.options;
    const { signal, cancel } = this.limit(new AbortController(), timeoutMs);
    try {
      const options = { ...urgently, fieldManager, signal, timeoutMs };
      await releaseLease(client, { name, namespace }, this.identity, () => this.clock.wallMs(), options);
      logger.info({ lease: this.where, identity: this.identity }, 'gave the Lease up');
    } catch (error) {
      logger.warn({ err: error, lease: this.where }, 'could not give the Lease up; it runs out by itself');
    } finally {
      cancel();
    }
  }

  private limit(abort: AbortController, ms: number): { readonly signal: AbortSignal; readonly cancel: () => void } {
    const expire = (): void => abort.abort(new TransportError(`no answer within ${ms} ms`, this.where));
    return { signal: abort.signal, cancel: this.clock.setTimer(expire, ms) };
  }

  private deadlinePassed(): boolean {
    if (this.state !== 'leader' || this.renewed === undefined) return false;
    return this.clock.monotonicMs() - this.renewed.monotonicMs >= this.times.renewDeadlineMs;
  }

  private now(): Instant {
    return { monotonicMs: this.clock.monotonicMs(), wallMs: this.clock.wallMs() };
  }

  private endTimers(): void {
    this.cancelTick?.();
    this.cancelDeadline?.();
    this.abort.abort(new NotLeaderError(`the election on ${this.where} ended`));
  }
}

/** A process that does not (or no longer certainly) hold the Lease was about to write. Nothing was sent. */
export class NotLeaderError extends Error {
  override readonly name = 'NotLeaderError';
}

/**
 * This process held the Lease and lost it. It must stop its work; it never becomes leader again.
 *
 * @testonly
 */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError';
}

/** The operator's other requests may occupy every connection for longer than the Lease lasts. */
const urgently = { urgent: true } as const;

type State = 'idle' | 'candidate' | 'leader' | 'lost' | 'stopped';

interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}
