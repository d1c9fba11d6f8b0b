/** A `metav1.Status`, reduced to the fields that are used. */
export interface ApiStatus {
  readonly code: number;
  /** For example `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden`, `Expired`. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
  /** From `details.retryAfterSeconds` or the `Retry-After` header, in seconds. */
  readonly retryAfterSeconds?: number;
}

/** The API server responded with an error. `message` is the server's own. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    readonly status: ApiStatus,
    /** For example `PATCH /apis/apps/v1/namespaces/a/deployments/b`; never a query with secrets. */
    readonly request: string,
    options?: { readonly cause?: unknown },
  ) {
    super(status.message, options);
  }
  get code(): number {
    return this.status.code;
  }
  get reason(): string {
    return this.status.reason;
  }
  /** True when one of the causes has this reason, for example `NamespaceTerminating`. */
  hasCause(reason: string): boolean {
    return this.status.causes.some((cause) => cause.reason === reason);
  }
}

/**
 * No response: connection refused or cut, timeout, TLS failure. The request may or may not have taken effect.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  constructor(
    message: string,
    readonly request: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** An error that says what failed, where, why and, if known, what to do. */
export function toTransportError(request: string, server: string, cause: unknown): TransportError {
  const code = errorCode(cause);
  // Node's error for a host of several addresses has a code, but no message.
  const why = textOf(cause, 'message') || code || 'unknown failure';
  const advice = ADVICE[code];
  const message = `${request} at ${server} failed: ${why}${advice === undefined ? '' : `; ${advice}`}`;
  return new TransportError(message, request, { cause });
}

/** Advice for the most frequent failures. Sources: Node's error codes, OpenSSL's verification errors. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'is the API server running, and is the server address of the kubeconfig right?',
  ENOTFOUND: 'the host name is unknown; check the server address of the kubeconfig and DNS',
  EAI_AGAIN: 'DNS did not answer; check the network',
  EHOSTUNREACH: 'there is no route to the host; check the network, VPN or firewall',
  ENETUNREACH: 'there is no route to the network; check the network, VPN or firewall',
  ETIMEDOUT: 'the host did not answer; check the network, VPN or firewall',
  UND_ERR_CONNECT_TIMEOUT: 'the host did not answer; check the network, VPN or firewall',
  CERT_HAS_EXPIRED: "the server's certificate has expired; renew it",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  SELF_SIGNED_CERT_IN_CHAIN:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the server's certificate is not trusted; check certificate-authority-data of the kubeconfig",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for other names; check the address or tls-server-name",
};

/** The code of a system, TLS or undici error, or the empty string. */
export function errorCode(error: unknown): string {
  return textOf(error, 'code');
}

/** A string property of an error, whichever realm created it (tests run in a realm of their own). */
function textOf(error: unknown, property: 'code' | 'message'): string {
  const value: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, property) : undefined;
  return typeof value === 'string' ? value : '';
}

/** Parses a `metav1.Status`; anything else (a proxy's page, an empty body) is quoted in the message. */
export function parseStatus(code: number, body: unknown, retryAfterHeader?: number): ApiStatus {
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

/** Parses the body of an error response, which may be a `Status` in JSON or any text. */
export function parseStatusText(code: number, body: string, retryAfterHeader?: number): ApiStatus {
  let parsed: unknown = body;
  try {
    parsed = JSON.parse(body);
  } catch {
    // Not JSON: quoted as it is.
  }
  return parseStatus(code, isRecord(parsed) ? parsed : body, retryAfterHeader);
}

/**
 * The seconds to wait by a `Retry-After` header, which is a number or a date.
 * Source: RFC 9110, 10.2.3.
 */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}

/** How much of a response that is not a `Status` (a proxy's page) is quoted, in characters. */
const QUOTED = 300;

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

function withRetryAfter(status: ApiStatus, seconds: number | undefined): ApiStatus {
  return seconds === undefined ? status : { ...status, retryAfterSeconds: seconds };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
