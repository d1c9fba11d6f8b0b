import type { CacheEvent } from './cache-event';
import type { HidesForeignChange } from './foreign-change';

interface Held {
  writes: number;
  /** In their order; an echo is taken out when the write it echoes is known. */
  events: { readonly event: CacheEvent; readonly mayBeEcho: boolean }[];
}

/**
 * Holds the events of a name back while a write of ours to it is under way: its echo in the stream can overtake its answer, and
 * only the answer tells the echo from somebody else's change.
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
   * True when the event is held back, and released or dropped later.
   * @param mayBeEcho false for what a list told: it may stand for somebody else's change before ours as well
   */
  hold(key: string, event: CacheEvent, mayBeEcho: boolean): boolean {
    const held = this.held.get(key);
    held?.events.push({ event, mayBeEcho });
    return held !== undefined;
  }

  /** @param version what the write was answered; empty when it failed. */
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
