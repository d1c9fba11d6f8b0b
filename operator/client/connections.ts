import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { Pool } from 'undici';
import type { TlsSettings } from './cluster-access';

/** Options of the connection pools. */
export interface ConnectionOptions {
  /**
   * Maximum number of connections that requests share; watches and urgent requests have one each, besides
   * these.
   * @default 32
   */
  readonly maxConnections?: number;
  /** Timeout of connecting, TLS included, in milliseconds. @default 10000 */
  readonly connectTimeoutMs?: number;
  /**
   * Maximum size of one response, in bytes; a longer one is cut off and fails. For servers that may not be
   * Kubernetes.
   * @default no limit
   */
  readonly maxResponseBytes?: number;
}

/** The pools of one set of TLS settings. */
export interface Pools {
  readonly requests: Pool;
  /** For watches and urgent requests. */
  readonly unbounded: Pool;
}

/**
 * The pooled connections to one API server. One pool is for requests, the other for watches, so that
 * long-lived watches take no connections away from requests. Urgent requests use the second one: requests may
 * occupy every connection of the first for as long as the slowest admission webhook takes.
 *
 * Guarantees: nothing is allocated per request; when the client certificate or the CA changes, new requests
 * use new connections and running ones finish on the old.
 */
export class Connections {
  private pools: Pools | undefined;
  private tls: TlsSettings | undefined;
  private readonly retired = new Set<Pool>();
  private closed = false;

  constructor(
    private readonly origin: string,
    private readonly options: ConnectionOptions = {},
  ) {}

  /**
   * The pools for these TLS settings.
   * @throws Error after `destroy`, and when a certificate or key cannot be read.
   */
  for(tls: TlsSettings | undefined): Pools {
    if (this.closed) throw new Error('the client was closed');
    if (this.pools !== undefined && tls === this.tls) return this.pools;
    if (this.pools !== undefined && sameTls(tls, this.tls)) {
      this.tls = tls;
      return this.pools;
    }
    const connect = this.connector(tls);
    if (this.pools !== undefined) this.retire(this.pools);
    this.tls = tls;
    this.pools = {
      requests: this.open(connect, this.options.maxConnections ?? 32),
      unbounded: this.open(connect, null),
    };
    return this.pools;
  }

  /** Closes every connection; running requests fail with `reason`. */
  async destroy(reason: Error): Promise<void> {
    this.closed = true;
    const pools = [...this.retired, ...(this.pools === undefined ? [] : [this.pools.requests, this.pools.unbounded])];
    this.pools = undefined;
    await Promise.all(pools.map((pool) => pool.destroy(reason)));
  }

  /** The certificates and the key are parsed once, not again for each connection. */
  private connector(tls: TlsSettings | undefined): Connector {
    const { ca, cert, key, ...checks } = tls ?? {};
    const secureContext = this.origin.startsWith('https:') ? createSecureContext({ ca, cert, key }) : undefined;
    return {
      ...checks,
      ...(secureContext === undefined ? {} : { secureContext }),
      timeout: this.options.connectTimeoutMs ?? 10_000,
      noDelay: true,
    };
  }

  private open(connect: Connector, connections: number | null): Pool {
    return new Pool(this.origin, {
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // The client has its own timeouts: one timer for a whole exchange, one for the silence of a watch.
      headersTimeout: 0,
      bodyTimeout: 0,
      // -1: no limit.
      maxResponseSize: this.options.maxResponseBytes ?? -1,
      connect,
    });
  }

  private retire(pools: Pools): void {
    for (const pool of [pools.requests, pools.unbounded]) {
      this.retired.add(pool);
      const forget = (): boolean => this.retired.delete(pool);
      // Closing fails only when the pool was destroyed meanwhile: then it is closed as well.
      pool.close().then(forget, forget);
    }
  }
}

/** The options that undici connects with. */
interface Connector extends Pick<TlsSettings, 'servername' | 'rejectUnauthorized'> {
  readonly secureContext?: SecureContext;
  readonly timeout: number;
  readonly noDelay: boolean;
}

/** Idle connections are closed before the API server closes them (after 90 s), in milliseconds. */
const KEEP_ALIVE_MS = 60_000;

function sameTls(a: TlsSettings | undefined, b: TlsSettings | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    sameBytes(a.ca, b.ca) &&
    sameBytes(a.cert, b.cert) &&
    sameBytes(a.key, b.key) &&
    a.servername === b.servername &&
    a.rejectUnauthorized === b.rejectUnauthorized
  );
}

function sameBytes(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return Buffer.from(a).equals(Buffer.from(b));
}
