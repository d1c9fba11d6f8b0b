import { readFile } from 'node:fs/promises';
import { codeOf } from '../errors';

/** One request as the API server's audit log tells it (audit.k8s.io/v1, level Metadata). */
export interface AuditEvent {
  readonly auditID: string;
  /** `ResponseStarted` for a watch that runs, `ResponseComplete` once a request has ended, or `Panic`. */
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string; readonly groups?: readonly string[] };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly apiVersion?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly reason?: string; readonly message?: string };
  /** With RBAC's `authorization.k8s.io/decision` (`allow` or `forbid`) and `.../reason`, which names the binding. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

/** Every request, metadata only. Its arrival is left out: each request would stand in the log twice. */
export const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`;

/** Reads an audit log; a last line that is still being written is left for the next time. */
export async function readAuditLog(file: string): Promise<AuditEvent[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []; // nothing was asked yet
    throw error;
  }
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent);
}
