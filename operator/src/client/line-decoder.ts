const NEWLINE = 0x0a;

/**
 * Splits a byte stream into lines, wherever its chunks are cut, inside a UTF-8 sequence too.
 *
 * Guarantees: bytes are looked at once and copied at most once; a line that came in one chunk is not copied at all.
 */
export class LineDecoder {
  private parts: Buffer[] = [];
  private partsLength = 0;

  /**
   * @param maxLineBytes A line longer than this is refused: no Kubernetes object comes near it, so it is not one. @default 64 MiB
   */
  constructor(private readonly maxLineBytes = 64 * 1024 * 1024) {}

  /** How many bytes wait for the end of their line. */
  get pendingBytes(): number {
    return this.partsLength;
  }

  /**
   * The lines that this chunk completes, without their ends; empty lines are left out.
   * @throws RangeError when a line passes `maxLineBytes`.
   */
  *push(chunk: Buffer): Generator<string, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.partsLength === 0 ? chunk.toString('utf8', start, end) : this.join(chunk.subarray(start, end));
      start = end + 1;
      if (line !== '' && line !== '\r') yield line;
    }
    if (start < chunk.length) this.keep(start === 0 ? chunk : chunk.subarray(start));
  }

  private join(rest: Buffer): string {
    const line = Buffer.concat([...this.parts, rest], this.partsLength + rest.length).toString('utf8');
    this.parts = [];
    this.partsLength = 0;
    return line;
  }

  private keep(part: Buffer): void {
    this.partsLength += part.length;
    if (this.partsLength > this.maxLineBytes) {
      throw new RangeError(`a line of the stream is longer than ${this.maxLineBytes} bytes`);
    }
    this.parts.push(part);
  }
}
