import type { KubeObject } from '../../../constructs/kube/kube-object';
import { Latest } from '../cache/latest';

/** The end of an object is heard of within this time; what still stands then has come back, say with a restored etcd. In milliseconds. */
const HEARD_WITHIN_MS = 60_000;

interface Pruning {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly at: number;
}

/**
 * What was deleted of the children of each object because the object wants it no more: so that a child that is made again by somebody
 * else is known for that, and one whose end has not been heard of yet is not deleted twice.
 */
export class Prunings {
  /** By owner, then by the child's address. */
  private readonly prunings = new Latest<Map<string, Pruning>>();

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
    return this.prunings.size;
  }

  /** A child has been deleted. */
  pruned(owner: string, child: string, { metadata: { uid, resourceVersion } }: KubeObject): void {
    const others = this.prunings.get(owner) ?? new Map<string, Pruning>();
    // Where an owner's children are renamed again and again, each has a name of its own.
    for (const [name, other] of others) if (this.isPast(other)) others.delete(name);
    others.set(child, { uid, resourceVersion, at: this.now() });
    this.prunings.set(owner, others);
  }

  /**
   * Whether a child that stands has been deleted before: `no`; `unheard`: it has, in this very state, and the event is on its way; `again`: it
   * has, and somebody has made it anew.
   */
  before(owner: string, child: string, { metadata: { uid, resourceVersion } }: KubeObject): 'no' | 'unheard' | 'again' {
    const pruning = this.prunings.get(owner)?.get(child);
    if (pruning === undefined || this.isPast(pruning)) return 'no';
    if (pruning.uid !== uid) return 'again';
    const isUnheard = pruning.resourceVersion === resourceVersion && this.now() - pruning.at <= HEARD_WITHIN_MS;
    return isUnheard ? 'unheard' : 'no';
  }

  /**
   * All that an owner wants to stand: what it once wanted no more and now wants again, we make ourselves.
   *
   * @param children called only when something is remembered
   */
  wanted(owner: string, children: () => readonly string[]): void {
    const prunings = this.prunings.get(owner);
    if (prunings === undefined) return;
    for (const child of children()) prunings.delete(child);
    if (prunings.size === 0) this.prunings.delete(owner);
  }

  /** The owner is gone. */
  forget(owner: string): void {
    this.prunings.delete(owner);
  }

  private isPast({ at }: Pruning): boolean {
    return this.now() - at > this.rememberMs;
  }
}
