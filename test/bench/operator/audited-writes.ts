import type { AuditEvent } from '../../../local';

/** Writes that one account made, as the API server's audit log tells them. */
export interface AuditedWrites {
  /** How many, by verb, resource and code: `{ 'create deployments 201': 1000 }`. */
  readonly counts: Readonly<Record<string, number>>;
  readonly total: number;
  /** Writes of Kubernetes Events, which are not among the others. */
  readonly events: number;
  /** When the server received the first, and when it had answered the last; milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
}

const reads = new Set(['get', 'list', 'watch']);

/** Adds up the writes of an account; the Lease that it renews all the time is left out. */
export function auditedWrites(log: readonly AuditEvent[], user: string): AuditedWrites {
  const all = log.filter(
    ({ stage, verb, objectRef, user: { username } }) =>
      username === user && stage === 'ResponseComplete' && !reads.has(verb) && objectRef?.resource !== 'leases',
  );
  const writes = all.filter(({ objectRef }) => objectRef?.resource !== 'events');
  const counts: Record<string, number> = {};
  for (const write of writes) counts[named(write)] = (counts[named(write)] ?? 0) + 1;
  const received = writes.map(({ requestReceivedTimestamp }) => milliseconds(requestReceivedTimestamp));
  const answered = writes.map(({ stageTimestamp }) => milliseconds(stageTimestamp));
  return {
    counts,
    total: writes.length,
    events: all.length - writes.length,
    firstAt: received.reduce((a, b) => Math.min(a, b), Infinity),
    lastAt: answered.reduce((a, b) => Math.max(a, b), -Infinity),
  };
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
