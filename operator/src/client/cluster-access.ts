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
