import { existsSync, watch, type FSWatcher } from 'node:fs';
import path from 'node:path';

/** Saves within this time are one change, in milliseconds: editors write a file in several steps. */
const debounceMs = 15;

/** Watches the folders of source files. */
export class SourceWatcher {
  private readonly watchers = new Map<string, FSWatcher>();
  private timer: NodeJS.Timeout | undefined;
  private waiting: (() => void) | undefined;
  private changed = new AbortController();
  private closed = false;

  /**
   * Watches the folders of these files, besides those that are watched already: a file that does not compile names no others,
   * and what mends it may be a file that does not exist yet.
   */
  add(files: readonly string[]): void {
    if (this.closed) return;
    for (const folder of new Set(files.map((file) => path.dirname(file)))) {
      if (!existsSync(folder)) continue;
      const before = this.watchers.get(folder);
      const watcher = watch(folder, (_, name) => {
        if (name === null || isSource(name) || this.watchers.has(path.join(folder, name))) this.notify();
      });
      watcher.on('error', () => watcher.close());
      this.watchers.set(folder, watcher);
      // The watch of a folder that was removed and made again says nothing any more, and its inode may be the same. It ends after the next one has
      // begun, so that no change is missed.
      before?.close();
    }
  }

  /** Aborts when something has changed since the last `next` resolved. */
  get saved(): AbortSignal {
    return this.changed.signal;
  }

  /** Resolves when something has changed since the last call. */
  async next(): Promise<void> {
    if (!this.saved.aborted) await new Promise<void>((resolve) => (this.waiting = resolve));
    this.changed = new AbortController();
    this.waiting = undefined;
  }

  /** Ends it for good: `add` does nothing after this. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const watcher of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  private notify(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.changed.abort();
      this.waiting?.();
    }, debounceMs);
  }
}

/** What a bundler reads: no test, and no file that an editor or a tool writes beside it. */
function isSource(name: string): boolean {
  return /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx|json|txt|ya?ml)$/.test(name) && !/\.(test|spec)\.[a-z]+$|^\./.test(name);
}
