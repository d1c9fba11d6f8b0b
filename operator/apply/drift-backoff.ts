import type { KubeObject } from '../../constructs/kube/kube-object';
import { LruMap } from '../collections/lru-map';

/** Corrections of one child without a delay. */
const FREE_CORRECTIONS = 5;
/** Corrections of one field within {@link RESET_AFTER_MS} that make it contested. */
const CONTESTED_AFTER = 3;
/** A child that needed no correction for this long counts as undisputed again, in milliseconds. */
const RESET_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 300_000;
/** By then the longest delay has ended, and the time after it in which no correction was needed. */
const REMEMBER_MS = LONGEST_DELAY_MS + RESET_AFTER_MS;
const SWEEP_EVERY = 1_000;

/** A field that another writer changes back. */
export interface Contest {
  readonly path: string;
  /** The other writer's field manager. */
  readonly by: string;
  /** In how many milliseconds to look again: after the delay, or when the contest counts as over. */
  readonly waitMs: number;
}

interface BackoffEntry {
  corrections: number;
  /** No correction before this. */
  notBefore: number;
  lastAt: number;
  /** When fields were corrected within the last minute, by path. */
  readonly corrected: Map<string, readonly number[]>;
  /** `at`: when that field was last corrected. */
  contest?: { readonly path: string; readonly by: string; readonly at: number } | undefined;
}

interface AppliedHash {
  readonly hash: string;
  /** What the child was rendered from, see {@link DriftBackoff.recordApply}. */
  readonly input: string | undefined;
  readonly at: number;
}

interface CreatedChild {
  readonly child: string;
  readonly hash: string;
}

/** The children that were created for one holder, and when the last one was. */
interface CreatedChildren {
  readonly at: number;
  /**
   * A list, though it is searched: a map for each of thousands of holders takes far more memory, and a holder
   * has few children.
   */
  readonly list: readonly CreatedChild[];
}

/**
 * Delays the correction of children that somebody else reverts, or deletes, again and again: two controllers
 * that disagree would otherwise write as fast as the API server answers. Five corrections are free; after
 * that the delay doubles from 1 s to 5 min. The third correction of one field within a minute makes it
 * contested, until a minute has passed without another: an autoscaler acts every 15 s only.
 *
 * A changed child is identified by its UID; a created one by type, namespace and name, because it has a new
 * UID each time. Its `holder` is the object that owns it, or the shared key.
 */
export class DriftBackoff {
  private readonly entries = new Map<string, BackoffEntry>();
  /** By the child's UID. */
  private readonly appliedHashes = new LruMap<AppliedHash>();
  /** By holder. */
  private readonly createdChildren = new LruMap<CreatedChildren>();
  private sinceSweep = 0;
  /** By the UID of an object: the fingerprint of the status that was last written. */
  readonly statusHashes = new LruMap<number>();
  /** The children that were deleted because their object no longer renders them. */
  readonly deletions: DeletionTracker;

  /** @param now a monotonic clock, in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.deletions = new DeletionTracker(now, REMEMBER_MS);
  }

  /** How long to wait before a drifted child is corrected, in milliseconds; 0 to go ahead. */
  remainingDelayMs(child: string): number {
    const entry = this.entries.get(child);
    return entry === undefined ? 0 : Math.max(0, entry.notBefore - this.now());
  }

  /**
   * The whole delay of which {@link remainingDelayMs} is the rest, in milliseconds: constant while it lasts,
   * for messages.
   */
  totalDelayMs(child: string): number {
    const entry = this.entries.get(child);
    return entry === undefined ? 0 : Math.max(0, entry.notBefore - entry.lastAt);
  }

  /** Whether a correction of a field now would make it contested. */
  isContestedNext(child: string, path: string): boolean {
    const entry = this.entries.get(child);
    if (entry === undefined || isQuiet(entry, this.now())) return false;
    return entry.corrections >= FREE_CORRECTIONS || this.recentCorrections(entry, path).length + 1 >= CONTESTED_AFTER;
  }

  /**
   * The field of a child that is contested; undefined when there is none, or it was not corrected for a minute.
   *
   * @param child called only when any child was corrected
   */
  contestOf(child: () => string): Contest | undefined {
    const entry = this.entries.size === 0 ? undefined : this.entries.get(child());
    if (entry?.contest === undefined) return undefined;
    const { path, by, at } = entry.contest;
    const waitMs = at + RESET_AFTER_MS - this.now();
    if (waitMs > 0) return { path, by, waitMs };
    entry.contest = undefined;
    return undefined;
  }

  /** Ends the contest of a child: something else is rendered now, or it is left to the other writer for a while. */
  endContest(child: string): void {
    const entry = this.entries.get(child);
    if (entry !== undefined) entry.contest = undefined;
  }

  /**
   * Records that a child was corrected. A write that the server rejected does not count.
   *
   * @param field the field that was corrected, and who had written it if it is contested; undefined for a child
   * that was deleted
   */
  recordCorrection(child: string, field?: { readonly path: string; readonly by: string | undefined }): void {
    const now = this.now();
    const entry = this.current(child, now);
    entry.corrections++;
    entry.lastAt = now;
    const over = entry.corrections - FREE_CORRECTIONS;
    if (over >= 0) entry.notBefore = now + Math.min(FIRST_DELAY_MS * 2 ** over, LONGEST_DELAY_MS);
    if (field === undefined) return;
    entry.corrected.set(field.path, [...this.recentCorrections(entry, field.path), now]);
    if (field.by === undefined) return;
    // Of several fields the first is named, as long as it is contested, so that the message stays the same.
    const { contest } = entry;
    const isOther = contest !== undefined && contest.path !== field.path && now - contest.at < RESET_AFTER_MS;
    if (!isOther) entry.contest = { path: field.path, by: field.by, at: now };
  }

  /**
   * Records that a child was applied. Its hash is remembered, because another writer may remove it from the
   * child.
   *
   * @param input a digest of what the child was rendered from; undefined when that is not known
   */
  recordApply(uid: string, hash: string, input?: string): void {
    const at = this.now();
    this.countForSweep(at);
    this.appliedHashes.set(uid, { hash, input, at });
  }

  /** Whether a child was last applied with another hash, although it was rendered from the same. */
  isRenderedDifferently(uid: string, hash: string, input: string | undefined): boolean {
    const last = this.appliedHashes.get(uid);
    if (last === undefined || input === undefined || isPast(last, this.now())) return false;
    return last.input === input && last.hash !== hash;
  }

  /**
   * The hash of what was last applied to a child; undefined if that was never, or too long ago to count as
   * drift.
   */
  lastAppliedHash(uid: string): string | undefined {
    const application = this.appliedHashes.get(uid);
    return application === undefined || isPast(application, this.now()) ? undefined : application.hash;
  }

  /**
   * Records that a child was created. Its hash is remembered, because nothing of the child is left if
   * somebody else deletes it.
   */
  recordCreate(holder: string, child: string, hash: string): void {
    const at = this.now();
    this.countForSweep(at);
    const others = this.createdChildren.get(holder)?.list.filter((creation) => creation.child !== child) ?? [];
    // Not by spreading, for which the engine reserves room for 17 elements.
    this.createdChildren.set(holder, { at, list: others.concat({ child, hash }) });
  }

  /**
   * The hash of a child when it was last created; undefined if that was never, or too long ago to count as
   * drift.
   */
  lastCreatedHash(holder: string, child: string): string | undefined {
    const creations = this.createdChildren.get(holder);
    if (creations === undefined || isPast(creations, this.now())) return undefined;
    return creations.list.find((creation) => creation.child === child)?.hash;
  }

  /**
   * Sets all children that a holder renders. Children that it no longer renders are deleted by the operator
   * itself, so that creating one of them again later is no drift; nor is rendering a child again that the
   * operator once deleted.
   *
   * @param children called only when something is remembered
   */
  setDesiredChildren(holder: string, children: () => readonly string[]): void {
    this.deletions.setDesiredChildren(holder, children);
    const creations = this.createdChildren.get(holder);
    if (creations === undefined) return;
    const wanted = new Set(children());
    const list = creations.list.filter(({ child }) => wanted.has(child));
    if (list.length === 0) this.createdChildren.delete(holder);
    else if (list.length < creations.list.length) this.createdChildren.set(holder, { ...creations, list });
  }

  /** The number of remembered applies, creations, statuses and deletions, over all objects and children. */
  get size(): number {
    return [this.appliedHashes, this.createdChildren, this.statusHashes, this.deletions].reduce(
      (sum, { size }) => sum + size,
      0,
    );
  }

  /** Forgets an object or a child that was deleted: its UID never comes back. Delays of its name stay. */
  forget(uid: string): void {
    this.appliedHashes.delete(uid);
    this.createdChildren.delete(uid);
    this.statusHashes.delete(uid);
    this.deletions.forget(uid);
  }

  private current(child: string, now: number): BackoffEntry {
    const known = this.entries.get(child);
    if (known !== undefined && !isQuiet(known, now)) return known;
    this.countForSweep(now);
    const fresh = { corrections: 0, notBefore: 0, lastAt: now, corrected: new Map<string, readonly number[]>() };
    this.entries.set(child, fresh);
    return fresh;
  }

  private recentCorrections({ corrected }: BackoffEntry, path: string): readonly number[] {
    const now = this.now();
    return corrected.get(path)?.filter((at) => now - at <= RESET_AFTER_MS) ?? [];
  }

  /** Drops expired entries, once in `SWEEP_EVERY` calls. */
  private countForSweep(now: number): void {
    if (++this.sinceSweep < SWEEP_EVERY) return;
    this.sinceSweep = 0;
    for (const [child, entry] of this.entries) if (isQuiet(entry, now)) this.entries.delete(child);
    for (const latest of [this.appliedHashes, this.createdChildren]) latest.sweep((entry) => isPast(entry, now));
  }
}

/** Whether a child has needed no correction for long enough, counted from the end of the delay. */
function isQuiet(entry: BackoffEntry, now: number): boolean {
  return now - Math.max(entry.lastAt, entry.notBefore) > RESET_AFTER_MS;
}

function isPast({ at }: { readonly at: number }, now: number): boolean {
  return now - at > REMEMBER_MS;
}

/**
 * A deletion event arrives within this time, in milliseconds; a deleted object that still exists later has
 * come back, for example with a restored etcd.
 */
const DELETE_EVENT_TIMEOUT_MS = 60_000;

interface Deletion {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly at: number;
}

/**
 * Remembers the children that were deleted because their object no longer renders them: to recognise one that
 * somebody else creates again, and not to delete one twice whose deletion event has not arrived yet.
 */
export class DeletionTracker {
  /** By owner, then by the child's address. */
  private readonly deletions = new LruMap<Map<string, Deletion>>();

  /**
   * @param now a monotonic clock, in milliseconds
   * @param rememberMs for how long a deletion is remembered
   */
  constructor(
    private readonly now: () => number,
    private readonly rememberMs: number,
  ) {}

  /** For how many objects deletions are remembered. */
  get size(): number {
    return this.deletions.size;
  }

  /** Records that a child was deleted. */
  recordDeletion(owner: string, child: string, { metadata: { uid, resourceVersion } }: KubeObject): void {
    const others = this.deletions.get(owner) ?? new Map<string, Deletion>();
    // Children that are renamed again and again would otherwise accumulate, each under a name of its own.
    for (const [name, other] of others) if (this.isPast(other)) others.delete(name);
    others.set(child, { uid, resourceVersion, at: this.now() });
    this.deletions.set(owner, others);
  }

  /**
   * Whether a live child has been deleted before: `no`; `unheard`: it was, in this very state, and the event
   * has not arrived yet; `again`: it was, and somebody has created it again.
   */
  priorDeletion(
    owner: string,
    child: string,
    { metadata: { uid, resourceVersion } }: KubeObject,
  ): 'no' | 'unheard' | 'again' {
    const pruning = this.deletions.get(owner)?.get(child);
    if (pruning === undefined || this.isPast(pruning)) return 'no';
    if (pruning.uid !== uid) return 'again';
    const isUnheard = pruning.resourceVersion === resourceVersion && this.now() - pruning.at <= DELETE_EVENT_TIMEOUT_MS;
    return isUnheard ? 'unheard' : 'no';
  }

  /**
   * Sets all children that an owner renders: those that it renders again are created by the operator itself.
   *
   * @param children called only when something is remembered
   */
  setDesiredChildren(owner: string, children: () => readonly string[]): void {
    const prunings = this.deletions.get(owner);
    if (prunings === undefined) return;
    for (const child of children()) prunings.delete(child);
    if (prunings.size === 0) this.deletions.delete(owner);
  }

  /** Forgets an owner that was deleted. */
  forget(owner: string): void {
    this.deletions.delete(owner);
  }

  private isPast({ at }: Deletion): boolean {
    return this.now() - at > this.rememberMs;
  }
}
