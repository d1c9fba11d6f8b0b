import type { KubeObject } from '../../constructs/kube/kube-object';
import { LruMap } from '../collections/lru-map';

/** Corrections of one child that are made without delay. */
const FREE_CORRECTIONS = 5;
/** A child that was not corrected for this long is contested no more, in milliseconds. */
const RESET_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 300_000;
/** Then even the longest delay is over, and the quiet time with it. */
const REMEMBER_MS = LONGEST_DELAY_MS + RESET_AFTER_MS;
const SWEEP_EVERY = 1_000;

interface BackoffEntry {
  corrections: number;
  /** No correction before this. */
  notBefore: number;
  lastAt: number;
}

interface AppliedHash {
  readonly hash: string;
  readonly at: number;
}

interface CreatedChild {
  readonly child: string;
  readonly hash: string;
}

/** What was created of the children of one holder, and when the last of it was. */
interface CreatedChildren {
  readonly at: number;
  /** A list, though it is searched: a map for each of thousands of holders takes far more memory, and a holder has few children. */
  readonly list: readonly CreatedChild[];
}

/**
 * Slows down the correction of children that somebody else changes back, or deletes, again and again: two controllers that both insist on
 * what they want would else write as fast as the API server answers. Five corrections are free; from then on the delay doubles from 1 s to
 * 5 min.
 *
 * A child is named by its UID where it is changed, and by type, namespace and name where it is created: then it has a new UID each time. Its
 * holder is the object that owns it, or the shared key.
 */
export class DriftBackoff {
  private readonly entries = new Map<string, BackoffEntry>();
  /** By the child's UID. */
  private readonly appliedHashes = new LruMap<AppliedHash>();
  /** By holder. */
  private readonly createdChildren = new LruMap<CreatedChildren>();
  private sinceSweep = 0;
  /** The status that was last written of an object, as a fingerprint, by its UID. */
  readonly statusHashes = new LruMap<number>();
  /** What was deleted of the children of an object because it wants it no more. */
  readonly deletions: DeletionTracker;

  /** @param now a monotonic clock, in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.deletions = new DeletionTracker(now, REMEMBER_MS);
  }

  /** How long to wait before a child is corrected that no longer is as it was applied, in milliseconds; 0 to go ahead. */
  remainingDelayMs(child: string): number {
    const entry = this.entries.get(child);
    return entry === undefined ? 0 : Math.max(0, entry.notBefore - this.now());
  }

  /** How long the whole delay is of which {@link remainingDelayMs} is the rest: the same as long as it lasts, for people to read. */
  totalDelayMs(child: string): number {
    const entry = this.entries.get(child);
    return entry === undefined ? 0 : Math.max(0, entry.notBefore - entry.lastAt);
  }

  /** A child has been corrected. What the server refused is no correction. */
  recordCorrection(child: string): void {
    const now = this.now();
    const entry = this.current(child, now);
    entry.corrections++;
    entry.lastAt = now;
    const over = entry.corrections - FREE_CORRECTIONS;
    if (over >= 0) entry.notBefore = now + Math.min(FIRST_DELAY_MS * 2 ** over, LONGEST_DELAY_MS);
  }

  /** A child has been applied. Its hash is remembered, because another writer may take it out of the child. */
  recordApply(uid: string, hash: string): void {
    const at = this.now();
    this.countForSweep(at);
    this.appliedHashes.set(uid, { hash, at });
  }

  /** The hash of what was last applied to a child; undefined when that was never, or is too long ago for a contest. */
  lastAppliedHash(uid: string): string | undefined {
    const application = this.appliedHashes.get(uid);
    return application === undefined || isPast(application, this.now()) ? undefined : application.hash;
  }

  /** A child has been created. Its hash is remembered, because somebody else may delete it: then nothing of it is left to tell. */
  recordCreate(holder: string, child: string, hash: string): void {
    const at = this.now();
    this.countForSweep(at);
    const others = this.createdChildren.get(holder)?.list.filter((creation) => creation.child !== child) ?? [];
    // Not by spreading, for which the engine makes room for 17.
    this.createdChildren.set(holder, { at, list: others.concat({ child, hash }) });
  }

  /** The hash of a child when it was last created; undefined when that was never, or is too long ago for a contest. */
  lastCreatedHash(holder: string, child: string): string | undefined {
    const creations = this.createdChildren.get(holder);
    if (creations === undefined || isPast(creations, this.now())) return undefined;
    return creations.list.find((creation) => creation.child === child)?.hash;
  }

  /**
   * All that a holder wants to stand. What it wants no more we delete ourselves: if that is ever created again, nobody has contested it. Nor has
   * anybody where it wants again what it once had deleted.
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

  /** For how many objects and children is known what was last done to them. */
  get size(): number {
    return [this.appliedHashes, this.createdChildren, this.statusHashes, this.deletions].reduce(
      (sum, { size }) => sum + size,
      0,
    );
  }

  /**
   * An object, or a child, is gone: none of its UID comes again, so nothing is compared any more with what it was sent. What its name is still
   * delayed for stays.
   */
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
    const fresh = { corrections: 0, notBefore: 0, lastAt: now };
    this.entries.set(child, fresh);
    return fresh;
  }

  /** Every so many entries, those whose time is over are dropped. */
  private countForSweep(now: number): void {
    if (++this.sinceSweep < SWEEP_EVERY) return;
    this.sinceSweep = 0;
    for (const [child, entry] of this.entries) if (isQuiet(entry, now)) this.entries.delete(child);
    for (const latest of [this.appliedHashes, this.createdChildren]) latest.sweep((entry) => isPast(entry, now));
  }
}

/** The quiet time begins when the delay is over. */
function isQuiet(entry: BackoffEntry, now: number): boolean {
  return now - Math.max(entry.lastAt, entry.notBefore) > RESET_AFTER_MS;
}

function isPast({ at }: { readonly at: number }, now: number): boolean {
  return now - at > REMEMBER_MS;
}

/** The end of an object is heard of within this time; what still stands then has come back, say with a restored etcd. In milliseconds. */
const DELETE_EVENT_TIMEOUT_MS = 60_000;

interface Deletion {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly at: number;
}

/**
 * What was deleted of the children of each object because the object wants it no more: so that a child that is made again by somebody
 * else is known for that, and one whose end has not been heard of yet is not deleted twice.
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

  /** Of how many objects. */
  get size(): number {
    return this.deletions.size;
  }

  /** A child has been deleted. */
  recordDeletion(owner: string, child: string, { metadata: { uid, resourceVersion } }: KubeObject): void {
    const others = this.deletions.get(owner) ?? new Map<string, Deletion>();
    // Where an owner's children are renamed again and again, each has a name of its own.
    for (const [name, other] of others) if (this.isPast(other)) others.delete(name);
    others.set(child, { uid, resourceVersion, at: this.now() });
    this.deletions.set(owner, others);
  }

  /**
   * Whether a child that stands has been deleted before: `no`; `unheard`: it has, in this very state, and the event is on its way; `again`: it
   * has, and somebody has made it anew.
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
   * All that an owner wants to stand: what it once wanted no more and now wants again, we make ourselves.
   *
   * @param children called only when something is remembered
   */
  setDesiredChildren(owner: string, children: () => readonly string[]): void {
    const prunings = this.deletions.get(owner);
    if (prunings === undefined) return;
    for (const child of children()) prunings.delete(child);
    if (prunings.size === 0) this.deletions.delete(owner);
  }

  /** The owner is gone. */
  forget(owner: string): void {
    this.deletions.delete(owner);
  }

  private isPast({ at }: Deletion): boolean {
    return this.now() - at > this.rememberMs;
  }
}
