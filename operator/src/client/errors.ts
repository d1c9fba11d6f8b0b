/** A `metav1.Status` as the API server answers it, cut to what is used. */
export interface ApiStatus {
  readonly code: number;
  /** For example `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden`, `Expired`. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
  /** From `details.retryAfterSeconds` or the `Retry-After` header, in seconds. */
  readonly retryAfterSeconds?: number;
}

/** The API server answered and refused. `message` holds its own words. */
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

/** No answer came: connection refused or cut, timeout, TLS failure. The request may or may not have taken effect. */
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
