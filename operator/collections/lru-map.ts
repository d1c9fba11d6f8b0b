/** A map of bounded size: it keeps the entries that were set last. */
export class LruMap<V> {
  private readonly entries = new Map<string, V>();

  constructor(private readonly maxSize = 10_000) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): V | undefined {
    return this.entries.get(key);
  }

  set(key: string, value: V): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size <= this.maxSize) return;
    const [oldest] = this.entries.keys();
    if (oldest !== undefined) this.entries.delete(oldest);
  }

  /** Deletes the entries that are past. */
  sweep(isPast: (value: V) => boolean): void {
    for (const [key, value] of this.entries) if (isPast(value)) this.entries.delete(key);
  }

  delete(key: string): void {
    this.entries.delete(key);
  }
}
