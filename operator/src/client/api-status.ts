import type { ApiStatus } from './errors';

/** How much of an answer that is no `Status` (a proxy's page) is quoted, in characters. */
const QUOTED = 300;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function causesOf(details: Record<string, unknown>): ApiStatus['causes'] {
  if (!Array.isArray(details['causes'])) return [];
  return details['causes'].filter(isRecord).map((cause) => {
    const reason = text(cause['reason']);
    const message = text(cause['message']);
    const field = text(cause['field']);
    return {
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      ...(field === undefined ? {} : { field }),
    };
  });
}

/**
 * The seconds a `Retry-After` header asks to wait: a number, or a date.
 * Source: RFC 9110, 10.2.3.
 */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

/** Reads a `metav1.Status`; anything else (a proxy's page, an empty body) is quoted in the message. */
export function statusFrom(code: number, body: unknown, retryAfterHeader?: number): ApiStatus {
  if (!isRecord(body) || body['kind'] !== 'Status') {
    const said = typeof body === 'string' ? body.trim().slice(0, QUOTED) : '';
    const message = `The server answered ${code}${said === '' ? ' and said nothing more' : `: ${said}`}`;
    return withRetryAfter({ code, reason: '', message, causes: [] }, retryAfterHeader);
  }
  const details = isRecord(body['details']) ? body['details'] : {};
  const seconds = details['retryAfterSeconds'];
  const status: ApiStatus = {
    code: typeof body['code'] === 'number' && body['code'] > 0 ? body['code'] : code,
    reason: text(body['reason']) ?? '',
    message: text(body['message']) ?? `The server answered ${code} and gave no reason`,
    causes: causesOf(details),
  };
  return withRetryAfter(status, retryAfterHeader ?? (typeof seconds === 'number' && seconds > 0 ? seconds : undefined));
}

function withRetryAfter(status: ApiStatus, seconds: number | undefined): ApiStatus {
  return seconds === undefined ? status : { ...status, retryAfterSeconds: seconds };
}

/** Reads the body of a refusal, which may be a `Status` in JSON or any text. */
export function statusFromText(code: number, body: string, retryAfterHeader?: number): ApiStatus {
  let parsed: unknown = body;
  try {
    parsed = JSON.parse(body);
  } catch {
    // Not JSON, so it is quoted as it stands.
  }
  return statusFrom(code, isRecord(parsed) ? parsed : body, retryAfterHeader);
}
