/** Keeps the end of a stream of bytes. */
export class TailBuffer {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** @param limit - bytes to keep */
  constructor(private readonly limit: number) {}

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      const [first] = this.#chunks;
      if (first === undefined || this.#length - first.length < this.limit) return;
      this.#chunks.shift();
      this.#length -= first.length;
    }
  }

  toString(): string {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - this.limit)).toString('utf8');
  }
}
