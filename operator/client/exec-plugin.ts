import type { Credentials } from './cluster-access';

/** The part of KubeConfig's exec authenticator that knows when a credential expires. It is not in the package's types. */
interface ExecAuthenticator {
  readonly tokenCache: Readonly<Record<string, { readonly status?: { readonly expirationTimestamp?: string } } | null>>;
}

interface ConfigWithUser {
  getCurrentUser(): { readonly name: string; readonly exec?: unknown } | null;
}

/** An exec credential is renewed when less than this is left of it, in milliseconds. */
const MARGIN_MS = 60_000;

const cachedCredentials = new WeakMap<ConfigWithUser, Credentials>();

/**
 * When the credential of an exec plugin has to be asked for again: shortly before it expires, or, when it does not say so, only after the
 * server refused it (as client-go does). The package itself would run the plugin for each request in the latter case.
 */
export class ExecCredentialCache {
  private constructor(readonly credentials: Credentials | undefined) {}

  static of(config: ConfigWithUser): ExecCredentialCache {
    return new ExecCredentialCache(cachedCredentials.get(config));
  }

  /** Keeps the credentials of an exec plugin, with their expiry; others are passed through. */
  static store(config: ConfigWithUser, credentials: Credentials): Credentials {
    const user = config.getCurrentUser();
    if (user?.exec === undefined || user.exec === null) return credentials;
    const expiresAt = expiryOf(config, user.name);
    const complete: Credentials = expiresAt === undefined ? credentials : { ...credentials, expiresAt };
    cachedCredentials.set(config, complete);
    return complete;
  }

  /** False when nothing is kept, or too little is left of it. */
  isUsable(now: number): boolean {
    if (this.credentials === undefined) return false;
    return this.credentials.expiresAt === undefined || now < this.credentials.expiresAt - MARGIN_MS;
  }
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

/** What an exec plugin is started with, as the kubeconfig has it. */
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

/**
 * Lets the exec plugin know, as client-go does, which version of the protocol to speak, that nobody sits at a terminal, and, if the
 * kubeconfig says so, which cluster it is for. The package leaves this out.
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

function clusterInfo(cluster: ClusterEntry): Record<string, unknown> {
  return {
    server: cluster.server,
    'certificate-authority-data': cluster.caData,
    'tls-server-name': cluster.tlsServerName,
    ...(cluster.skipTLSVerify ? { 'insecure-skip-tls-verify': true } : {}),
  };
}
