import { randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditEvent } from '../../../local';
import type { ApiClient } from '../../../operator/client/api-client';

const chunkBytes = 1 << 20;
const patienceMs = 30_000;

/**
 * Reads an API server's audit log bit by bit: with some ten thousand objects the whole would not fit into a string. Only lines of the
 * accounts that are asked for are taken apart.
 */
export class AuditTail {
  private offset = 0;
  private rest = Buffer.alloc(0);

  /** @param file the log @param client whose requests mark how far it has been written */
  constructor(
    private readonly file: string,
    private readonly client: ApiClient,
  ) {}

  /** What an account asked for since the last call, up to now. */
  async since(user: string): Promise<readonly AuditEvent[]> {
    // A request stands in the log just after it was answered; when ours is there, earlier ones are too.
    const mark = randomUUID();
    await this.client.getPath(`/version?bench=${mark}`);
    const deadline = Date.now() + patienceMs;
    const events: AuditEvent[] = [];
    for (;;) {
      let marked = false;
      for await (const line of this.lines()) {
        if (line.includes(mark)) marked = true;
        else if (line.includes(user)) events.push(JSON.parse(line) as AuditEvent);
      }
      if (marked) return events;
      if (Date.now() > deadline) throw new Error(`${this.file} lacks a request that was answered`);
      await delay(10);
    }
  }

  private async *lines(): AsyncGenerator<string> {
    const handle = await open(this.file);
    try {
      for (;;) {
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(chunkBytes), 0, chunkBytes, this.offset);
        if (bytesRead === 0) return;
        this.offset += bytesRead;
        const whole = Buffer.concat([this.rest, buffer.subarray(0, bytesRead)]);
        const end = whole.lastIndexOf('\n') + 1;
        this.rest = whole.subarray(end);
        yield* whole.toString('utf8', 0, end).split('\n');
      }
    } finally {
      await handle.close();
    }
  }
}
