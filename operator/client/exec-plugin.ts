import type { Credentials } from './cluster-access';

/**
 * Caches the credential of an exec plugin until shortly before it expires or, when it has no expiry, until
 * the server rejects it (as client-go does). Without this, the package would run a plugin without expiry for
 * each request.
 */
export class ExecCredentialCache {
  private constructor(readonly credentials: Credentials | undefined) {}

  static of(config: ConfigWithUser): ExecCredentialCache {
    return new ExecCredentialCache(cachedCredentials.get(config));
  }

  /**
   * Stores the credentials of an exec plugin with their expiry; other credentials are returned as they are.
   */
  static store(config: ConfigWithUser, credentials: Credentials): Credentials {
    const user = config.getCurrentUser();
    if (user?.exec === undefined || user.exec === null) return credentials;
    const expiresAt = expiryOf(config, user.name);
    const complete: Credentials = expiresAt === undefined ? credentials : { ...credentials, expiresAt };
    cachedCredentials.set(config, complete);
    return complete;
  }

  /** False when nothing is stored, or too little time is left. */
  isUsable(now: number): boolean {
    if (this.credentials === undefined) return false;
    return this.credentials.expiresAt === undefined || now < this.credentials.expiresAt - MARGIN_MS;
  }
}

interface ConfigWithUser {
  getCurrentUser(): { readonly name: string; readonly exec?: unknown } | null;
}

/** An exec credential with less than this left, in milliseconds, is renewed. */
const MARGIN_MS = 60_000;

const cachedCredentials = new WeakMap<ConfigWithUser, Credentials>();

/**
 * The part of KubeConfig's exec authenticator that knows when a credential expires. The package's types leave
 * it out.
 */
interface ExecAuthenticator {
  readonly tokenCache: Readonly<Record<string, { readonly status?: { readonly expirationTimestamp?: string } } | null>>;
}

function expiryOf(config: ConfigWithUser, user: string): number | undefined {
  const { authenticators } = config as ConfigWithUser & {
    readonly authenticators?: readonly Partial<ExecAuthenticator>[];
  };
  const credential = authenticators
    ?.map((each) => each.tokenCache?.[user])
    .find((each) => each !== undefined && each !== null);
  const expiresAt = Date.parse(credential?.status?.expirationTimestamp ?? '');
  return Number.isNaN(expiresAt) ? undefined : expiresAt;
}

/**
 * Sets `KUBERNETES_EXEC_INFO` for the exec plugin, as client-go does: the version of the protocol, that there
 * is no terminal and, if the kubeconfig asks for it, the cluster. The package does not set it.
 *
 * Source: Kubernetes documentation, "client-go credential plugins", input and output formats.
 */
export function setExecInfo(config: ConfigWithExec): void {
  const exec = config.getCurrentUser()?.exec as ExecConfig | null | undefined;
  const cluster = config.getCurrentCluster();
  if (exec === undefined || exec === null || cluster === null) return;
  const env = exec.env ?? [];
  if (env.some(({ name }) => name === NAME)) return;
  const value = JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion,
    spec: { interactive: false, ...(exec.provideClusterInfo === true ? { cluster: clusterInfo(cluster) } : {}) },
  });
  exec.env = [...env, { name: NAME, value }];
}

/** The `exec` entry of a kubeconfig's user. */
interface ExecConfig {
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  env?: { readonly name: string; readonly value: string }[] | null;
}

interface ClusterEntry {
  readonly server: string;
  readonly caData?: string;
  readonly tlsServerName?: string;
  readonly skipTLSVerify: boolean;
}

interface ConfigWithExec {
  getCurrentUser(): { readonly exec?: unknown } | null;
  getCurrentCluster(): ClusterEntry | null;
}

const NAME = 'KUBERNETES_EXEC_INFO';

function clusterInfo(cluster: ClusterEntry): Record<string, unknown> {
  return {
    server: cluster.server,
    'certificate-authority-data': cluster.caData,
    'tls-server-name': cluster.tlsServerName,
    ...(cluster.skipTLSVerify ? { 'insecure-skip-tls-verify': true } : {}),
  };
}
