import type { KubeObject } from '../../constructs/kube/kube-object';
import { compareResourceVersions } from '../client/api-client';
import type { CacheEvent } from './projection';

/** The record of one name. */
export interface OwnVersionsOf {
  /** Versions that our own writes created and the watch has not reported yet. */
  ownVersions?: string[] | undefined;
}

/** A version and its object. */
interface OwnVersion {
  readonly version: string;
  readonly key: string;
  readonly uid: string | undefined;
}

/** The versions that our own writes created and the watch has not reported yet, by name and by version. */
export class OwnVersions {
  private readonly byVersion = new Map<string, OwnVersion>();

  /** The number of versions that the watch has not reported yet. */
  get size(): number {
    return this.byVersion.size;
  }

  /** The object of a version that our own write created. */
  get(version: string): OwnVersion | undefined {
    return this.byVersion.get(version);
  }

  add(slot: OwnVersionsOf, own: OwnVersion): void {
    (slot.ownVersions ??= []).push(own.version);
    this.byVersion.set(own.version, own);
  }

  /**
   * Drops the versions up to one that the watch has reached.
   * @returns whether that one is ours
   */
  confirm(slot: OwnVersionsOf, version: string): boolean {
    const { ownVersions } = slot;
    if (ownVersions === undefined) return false;
    const still: string[] = [];
    for (const own of ownVersions) {
      if (compareResourceVersions(own, version) > 0) still.push(own);
      else this.byVersion.delete(own);
    }
    slot.ownVersions = still.length === 0 ? undefined : still;
    return ownVersions.includes(version);
  }

  /** Drops all versions of a name: its next events are judged by their contents. */
  forget(slot: OwnVersionsOf): void {
    for (const version of slot.ownVersions ?? []) this.byVersion.delete(version);
    slot.ownVersions = undefined;
  }
}

/**
 * Delays the events of a name while a write of ours to it is running: the write's echo in the watch can
 * arrive before its response, and only the response distinguishes the echo from somebody else's change.
 */
export class PendingWrites {
  private readonly held = new Map<string, Held>();

  constructor(
    private readonly release: (event: CacheEvent) => void,
    private readonly hides: HidesForeignChange,
  ) {}

  begin(key: string): void {
    const held = this.held.get(key);
    if (held === undefined) this.held.set(key, { writes: 1, events: [] });
    else held.writes++;
  }

  /**
   * True when the event is delayed; it is released or dropped later.
   * @param mayBeEcho false for the result of a list, which may include somebody else's change before ours
   */
  hold(key: string, event: CacheEvent, mayBeEcho: boolean): boolean {
    const held = this.held.get(key);
    held?.events.push({ event, mayBeEcho });
    return held !== undefined;
  }

  /** @param version the version in the response to the write; empty when it failed */
  end(key: string, version: string): void {
    const held = this.held.get(key);
    if (held === undefined) return;
    held.writes--;
    held.events = held.events.filter(({ event, mayBeEcho }) => !mayBeEcho || !this.isEcho(event, version));
    if (held.writes > 0) return;
    this.held.delete(key);
    for (const { event } of held.events) this.release(event);
  }

  private isEcho(event: CacheEvent, version: string): boolean {
    if (version === '' || event.object.object.metadata.resourceVersion !== version) return false;
    if (event.type === 'added') return true;
    return event.type === 'updated' && event.old !== undefined && !this.hides(event.old.object, event.object.object);
  }
}

interface Held {
  writes: number;
  /** In order; an echo is removed when the version of its write is known. */
  events: { readonly event: CacheEvent; readonly mayBeEcho: boolean }[];
}

/** Whether the response to a write of ours shows that somebody else changed the object as well. */
export type HidesForeignChange = (before: KubeObject, answer: KubeObject) => boolean;

/**
 * @param keepsSpec our writes never change spec, labels and annotations, so a change of them is somebody
 * else's
 */
export function hidesForeignChange(keepsSpec: boolean): HidesForeignChange {
  return ({ metadata: before }, { metadata: answer }) => {
    if (before.uid !== answer.uid) return false;
    // We never write a deletionTimestamp.
    if (before.deletionTimestamp !== answer.deletionTimestamp) return true;
    if (!keepsSpec) return false;
    return (
      before.generation !== answer.generation ||
      !sameStrings(before.labels, answer.labels) ||
      !sameStrings(before.annotations, answer.annotations)
    );
  };
}

type Strings = Readonly<Record<string, string>>;

function sameStrings(a: Strings = {}, b: Strings = {}): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
