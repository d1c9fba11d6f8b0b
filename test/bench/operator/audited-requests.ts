import type { Counts } from '../../../bench/results';
import type { AuditEvent } from '../../../local';

/** What one account asked for, as the API server's audit log tells it. */
export interface AuditedRequests {
  /** Writes by verb, resource and code, without events and Leases: `{ 'create deployments 201': 1000 }`. */
  readonly writes: Counts;
  readonly writeCount: number;
  /** Writes of Kubernetes Events, which are not among the others. */
  readonly events: number;
  /** Every request that has ended, and every watch that has begun, by verb and code: `{ 'get 200': 3 }`. */
  readonly requests: Counts;
  /** When the server received the first write, and when it had answered the last; milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Objects whose status was written, and when the server had answered the first such write of the last of them. */
  readonly done: number;
  readonly doneAt: number;
}

const reads = new Set(['get', 'list', 'watch']);

/** Adds up the requests of an account. */
export function auditedRequests(log: readonly AuditEvent[], user: string): AuditedRequests {
  const own = log.filter(({ user: { username } }) => username === user);
  // A watch stands in the log twice: when it begins, and when it ends, which may be long after.
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

/** When each object's status was first written; refused writes are none. */
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

/** `2030-01-02T03:04:05.678901Z`, the microseconds kept. */
function milliseconds(timestamp: string): number {
  const micros = /\.\d{3}(\d{3})Z$/.exec(timestamp)?.[1] ?? '0';
  return Date.parse(timestamp) + Number(micros) / 1000;
}
