import { withTimeout } from '../process/wait';

/** How to trust the server and to present a client certificate. */
export interface TlsSettings {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name to ask for and to check, where it is not the address's. */
  readonly servername?: string;
  /** False only where the kubeconfig says `insecure-skip-tls-verify`. @default true */
  readonly rejectUnauthorized?: boolean;
}

/** What a request needs to be let in. Never logged, never part of an error. */
export interface Credentials {
  /** For example `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls?: TlsSettings;
  /** When they stop being valid, in milliseconds since the epoch; absent when unknown. */
  readonly expiresAt?: number;
}

/** Where the API server is and how to be let in. */
export interface ClusterAccess {
  /** The API server's address, with a path if it stands behind one, without a slash at the end. */
  readonly server: string;
  /** The namespace of the kubeconfig's context, or the pod's own. */
  readonly namespace?: string;
  /**
   * The credentials of this moment. The client keeps the answer, asks again about once a minute and before `expiresAt`, and with
   * `rejected` after the server answered 401: then nothing that was kept may be used.
   */
  credentials(rejected: boolean): Promise<Credentials>;
}

/** Access with credentials that never change, for tests and for callers that have them at hand. */
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
  /** After how many milliseconds the credentials are asked for again. @default 60000 */
  readonly maxAgeMs?: number;
  /** Upper bound of asking for credentials (an exec plugin may hang), in milliseconds. @default 60000 */
  readonly timeoutMs?: number;
  /** @default Date.now */
  readonly now?: () => number;
}

/** Credentials with less than this left are renewed before they are used again, in milliseconds. */
const EXPIRY_MARGIN_MS = 10_000;

/**
 * Keeps the credentials of a cluster between requests.
 *
 * Guarantees: asking costs nothing while they are fresh; a renewal by age runs beside the requests and its failure leaves the old
 * ones in use (the server is the judge of them); an expired or rejected one is never handed out; one renewal runs at a time.
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

  /** The credentials to use now; a promise only when they have to be waited for. */
  get(): Credentials | Promise<Credentials> {
    const { current } = this;
    if (current === undefined) return this.renew();
    const now = this.now();
    if (now < this.renewAt) return current;
    if (current.expiresAt !== undefined && now >= current.expiresAt - EXPIRY_MARGIN_MS) return this.renew();
    this.renewAt = now + this.maxAgeMs;
    // The old ones stay in use when this fails: should the server refuse them, the request that is refused renews and reports.
    this.renew().catch(() => undefined);
    return current;
  }

  /** The server refused these with 401. Does nothing when others are in use by now. */
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
    // A process that has ended all else does not stay for them.
    return await withTimeout(this.access.credentials(rejected), {
      milliseconds: this.timeoutMs,
      onTimeout: late,
      ref: false,
    });
  }
}
