import { randomUUID } from 'node:crypto';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditEvent } from '../local';
import type { ApiClient } from '../operator/client/api-client';
import type { Counts } from './results';

const chunkBytes = 1 << 20;
const flushTimeoutMs = 30_000;

/**
 * Reads an API server's audit log in chunks: with tens of thousands of objects it does not fit into a string.
 * Only lines of the requested account are parsed.
 */
export class AuditLogTail {
  private offset = 0;
  private rest = Buffer.alloc(0);

  /** @param file the log @param client sends requests that mark how far the log has been written */
  constructor(
    private readonly file: string,
    private readonly client: ApiClient,
  ) {}

  /** The requests of an account since the last call. */
  async since(user: string): Promise<readonly AuditEvent[]> {
    // A request is logged just after its response; when ours is in the log, earlier ones are too.
    const mark = randomUUID();
    await this.client.getPath(`/version?bench=${mark}`);
    const deadline = Date.now() + flushTimeoutMs;
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

/** The requests of one account according to the API server's audit log. */
export interface AuditSummary {
  /** Writes by verb, resource and code, without events and Leases: `{ 'create deployments 201': 1000 }`. */
  readonly writes: Counts;
  readonly writeCount: number;
  /** Writes of Kubernetes Events, which `writes` does not contain. */
  readonly events: number;
  /** All requests that have ended and watches that have begun, by verb and code: `{ 'get 200': 3 }`. */
  readonly requests: Counts;
  /**
   * When the server received the first write, and when it had answered the last, in milliseconds since the
   * epoch.
   */
  readonly firstAt: number;
  readonly lastAt: number;
  /**
   * How many objects have a written status, and when the server had answered the first status write of the
   * last of them.
   */
  readonly done: number;
  readonly doneAt: number;
}

const reads = new Set(['get', 'list', 'watch']);

/** Adds up the requests of an account. */
export function summarizeAudit(log: readonly AuditEvent[], user: string): AuditSummary {
  const own = log.filter(({ user: { username } }) => username === user);
  // A watch is logged twice: when it begins, and when it ends, which may be long after.
  const requests = own.filter(({ stage, verb }) => (stage === 'ResponseStarted') === (verb === 'watch'));
  const all = requests.filter(({ verb, objectRef }) => !reads.has(verb) && objectRef?.resource !== 'leases');
  const writes = all.filter(({ objectRef }) => objectRef?.resource !== 'events');
  const received = writes.map(({ requestReceivedTimestamp }) => milliseconds(requestReceivedTimestamp));
  const answered = writes.map(({ stageTimestamp }) => milliseconds(stageTimestamp));
  const statuses = firstStatuses(writes);
  return {
    writes: counted(writes, named),
    writeCount: writes.length,
    events: all.length - writes.length,
    requests: counted(requests, ({ verb, responseStatus }) => `${verb} ${String(responseStatus?.code)}`),
    firstAt: received.reduce((a, b) => Math.min(a, b), Infinity),
    lastAt: latest(answered),
    done: statuses.size,
    doneAt: latest([...statuses.values()]),
  };
}

/** When each object's status was first written; rejected writes do not count. */
function firstStatuses(writes: readonly AuditEvent[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const { objectRef, responseStatus, stageTimestamp } of writes) {
    if (objectRef?.subresource !== 'status' || (responseStatus?.code ?? 500) >= 300) continue;
    const key = `${objectRef.namespace ?? ''}/${objectRef.name ?? ''}`;
    first.set(key, Math.min(first.get(key) ?? Infinity, milliseconds(stageTimestamp)));
  }
  return first;
}

function latest(times: readonly number[]): number {
  return times.reduce((a, b) => Math.max(a, b), -Infinity);
}

function counted(events: readonly AuditEvent[], name: (event: AuditEvent) => string): Counts {
  const counts: Record<string, number> = {};
  for (const event of events) counts[name(event)] = (counts[name(event)] ?? 0) + 1;
  return counts;
}

function named({ verb, objectRef, responseStatus }: AuditEvent): string {
  const { resource = '', subresource } = objectRef ?? {};
  return `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`} ${String(responseStatus?.code)}`;
}

/** Parses `2030-01-02T03:04:05.678901Z`, with its microseconds. */
function milliseconds(timestamp: string): number {
  const micros = /\.\d{3}(\d{3})Z$/.exec(timestamp)?.[1] ?? '0';
  return Date.parse(timestamp) + Number(micros) / 1000;
}
