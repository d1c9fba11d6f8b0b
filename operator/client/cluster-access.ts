import { withTimeout } from '../process/wait';

/** How to verify the server's certificate, and the client certificate to present. */
export interface TlsSettings {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The server name to send (SNI) and to verify. @default the host of the address */
  readonly servername?: string;
  /** False only where the kubeconfig says `insecure-skip-tls-verify`. @default true */
  readonly rejectUnauthorized?: boolean;
}

/** The credentials of a request. Never logged, never part of an error. */
export interface Credentials {
  /** For example `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls?: TlsSettings;
  /** When they expire, in milliseconds since the epoch; absent when unknown. */
  readonly expiresAt?: number;
}

/** The address of an API server, and how to authenticate to it. */
export interface ClusterAccess {
  /** The API server's URL, with a path if it is served under one, without a trailing slash. */
  readonly server: string;
  /** The namespace of the kubeconfig's context, or the pod's own. */
  readonly namespace?: string;
  /**
   * The current credentials. The client caches the result and calls again about once a minute and before
   * `expiresAt`. It passes true for `rejected` after the server responded with 401: then no cached credential
   * may be returned.
   */
  credentials(rejected: boolean): Promise<Credentials>;
}

/** Access with fixed credentials, for tests and for callers that already have them. */
export function staticAccess(
  server: string,
  credentials: Credentials = { headers: {} },
  namespace?: string,
): ClusterAccess {
  return {
    server: server.replace(/\/+$/, ''),
    ...(namespace === undefined ? {} : { namespace }),
    credentials: () => Promise.resolve(credentials),
  };
}

/** Options of a `CredentialCache`. */
export interface CredentialCacheOptions {
  /** After how many milliseconds the credentials are renewed. @default 60000 */
  readonly maxAgeMs?: number;
  /** Upper bound of one renewal (an exec plugin may hang), in milliseconds. @default 60000 */
  readonly timeoutMs?: number;
  /** @default Date.now */
  readonly now?: () => number;
}

/** Credentials with less than this left, in milliseconds, are renewed before they are used again. */
const EXPIRY_MARGIN_MS = 10_000;

/**
 * Caches the credentials of a cluster between requests.
 *
 * Guarantees:
 * - `get` costs nothing while they are fresh.
 * - A renewal by age runs in the background; when it fails, the old ones stay in use, and the server decides
 *   whether they are valid.
 * - An expired or rejected one is never returned.
 * - One renewal runs at a time.
 */
export class CredentialCache {
  private current: Credentials | undefined;
  private renewAt = 0;
  private pending: Promise<Credentials> | undefined;
  private rejected = false;
  private readonly maxAgeMs: number;
  private readonly timeoutMs: number;
  private readonly now: () => number;

  constructor(
    private readonly access: ClusterAccess,
    options: CredentialCacheOptions = {},
  ) {
    this.maxAgeMs = options.maxAgeMs ?? 60_000;
    this.timeoutMs = options.timeoutMs ?? 60_000;
    this.now = options.now ?? Date.now;
  }

  /** The credentials to use now; a promise only when they have to be fetched first. */
  get(): Credentials | Promise<Credentials> {
    const { current } = this;
    if (current === undefined) return this.renew();
    const now = this.now();
    if (now < this.renewAt) return current;
    if (current.expiresAt !== undefined && now >= current.expiresAt - EXPIRY_MARGIN_MS) return this.renew();
    this.renewAt = now + this.maxAgeMs;
    // When this fails, the old ones stay in use. If the server rejects them, the rejected request renews and
    // reports.
    this.renew().catch(() => undefined);
    return current;
  }

  /** Drops credentials that the server rejected with 401. Does nothing when others are in use by now. */
  reject(used: Credentials): void {
    if (this.current !== used) return;
    this.current = undefined;
    this.rejected = true;
    this.pending = undefined;
  }

  private renew(): Promise<Credentials> {
    if (this.pending !== undefined) return this.pending;
    const pending = this.ask(this.rejected).then(
      (credentials) => {
        if (this.pending === pending) this.accept(credentials);
        return credentials;
      },
      (error: unknown) => {
        if (this.pending === pending) this.pending = undefined;
        throw error;
      },
    );
    this.pending = pending;
    return pending;
  }

  private accept(credentials: Credentials): void {
    this.pending = undefined;
    this.rejected = false;
    this.current = credentials;
    const byAge = this.now() + this.maxAgeMs;
    this.renewAt = Math.min(byAge, (credentials.expiresAt ?? Infinity) - EXPIRY_MARGIN_MS);
  }

  private async ask(rejected: boolean): Promise<Credentials> {
    const late = (): never => {
      const seconds = this.timeoutMs / 1000;
      throw new Error(`no credentials after ${seconds} s; does the kubeconfig's exec plugin wait for input?`);
    };
    // `ref: false`: this timer does not keep the process alive.
    return await withTimeout(this.access.credentials(rejected), {
      milliseconds: this.timeoutMs,
      onTimeout: late,
      ref: false,
    });
  }
}
