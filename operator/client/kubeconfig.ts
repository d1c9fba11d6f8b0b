import { errorMessage } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';
import { homedir } from 'node:os';
import type { RequestOptions as HttpsOptions } from 'node:https';
// Only this module of the package: its request and informer code is not used, and a bundler can leave it out.
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { newClusters, newUsers } from '@kubernetes/client-node/dist/config_types.js';
import type { ClusterAccess, Credentials, TlsSettings } from './cluster-access';
import { ExecCredentialCache, setExecInfo } from './exec-plugin';
import {
  execField,
  KubeconfigError,
  loadKubeconfig,
  parseKubeconfig,
  pathField,
  readKubeconfig,
  selectContext,
  serverOf,
  textField,
  type Kubeconfig,
  type KubeconfigEntry,
  type SelectedContext,
} from './kubeconfig-files';
import { OidcTokenSource, oidcSettings } from './oidc';

export { KubeconfigError } from './kubeconfig-files';

/** Where to find the cluster and the credentials. */
export interface KubeconfigOptions {
  /** A kubeconfig file, alone. @default KUBECONFIG, then the pod's own ServiceAccount, then ~/.kube/config */
  readonly path?: string;
  /** @default the first current-context of the files */
  readonly context?: string;
  /** @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** @default the user's home directory */
  readonly home?: string;
  /** Put before the path of the mounted ServiceAccount; for tests. @default '' */
  readonly rootPrefix?: string;
}

/**
 * Finds the cluster: the file named by `path`, else the files in KUBECONFIG, else the ServiceAccount of this
 * pod, else ~/.kube/config. The files are read as kubectl reads them:
 * - KUBECONFIG is a list of files. Those that do not exist are skipped, and the first to define a cluster, user,
 *   context or current-context wins. In a pod, its ServiceAccount is used if they name no current-context.
 * - A relative path is relative to the directory of the file that holds it, and so is an exec plugin's command
 *   if there is a slash in it.
 *
 * The ServiceAccount has no contexts: with `context`, only files are read.
 *
 * @throws KubeconfigError when nothing is found, a file cannot be read or is not a kubeconfig, or the context
 *   names no server
 */
export function loadClusterAccess(options: KubeconfigOptions = {}): ClusterAccess {
  return accessFrom(load(options), options.context);
}

/**
 * Access through a kubeconfig that the caller has as text, for example from a Secret.
 * @param source names it in errors
 * @throws KubeconfigError
 */
export function clusterAccessFromText(text: string, source: string): ClusterAccess {
  return accessFrom(parseKubeconfig(text, source), undefined);
}

/**
 * The cluster of a context as an entry of another kubeconfig, wherever that is: its paths are absolute.
 *
 * @throws KubeconfigError as `loadClusterAccess`
 */
export function clusterEntry(options: KubeconfigOptions): Fields & { readonly server: string } {
  const { cluster } = selectContext(load(options), options.context);
  return { ...clusterFields(cluster), server: serverOf(cluster) };
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function load({ path, context, env, home, rootPrefix }: KubeconfigOptions): Kubeconfig {
  if (path !== undefined && path !== '') return readKubeconfig(path);
  return loadKubeconfig({
    ...{ env: env ?? process.env, home: home ?? homedir(), context },
    ...{ serviceAccount: `${rootPrefix ?? ''}${SERVICE_ACCOUNT}`, first: 'pod' },
  });
}

function accessFrom(kubeconfig: Kubeconfig, asked: string | undefined): ClusterAccess {
  const selected = selectContext(kubeconfig, asked);
  const { cluster, user, namespace } = selected;
  const server = serverOf(cluster).replace(/\/+$/, '');
  const { source } = user ?? cluster;
  const config = configOf(selected, source);
  setExecInfo(config);
  return { server, ...(namespace === undefined ? {} : { namespace }), credentials: credentialsOf(config, source) };
}

/** A config of the package with the one context, which resolves its credentials. */
function configOf({ cluster, user }: SelectedContext, source: string): KubeConfig {
  if (textField(cluster, 'proxy-url') !== undefined) {
    throw new KubeconfigError(
      `${cluster.source}: ${cluster.label} has a proxy-url, which is not supported; reach the server directly`,
    );
  }
  const config = new KubeConfig();
  try {
    config.loadFromOptions({
      clusters: newClusters([{ name: 'cluster', cluster: clusterFields(cluster) }]),
      users: newUsers([{ name: 'user', user: user === undefined ? {} : userFields(user) }]),
      contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
      currentContext: 'context',
    });
  } catch (error) {
    if (error instanceof KubeconfigError) throw error;
    throw new KubeconfigError(`${source} is not a kubeconfig: ${errorMessage(error)}`);
  }
  return config;
}

type Fields = Readonly<Record<string, unknown>>;

function clusterFields(cluster: KubeconfigEntry): Fields {
  return {
    server: serverOf(cluster),
    ...fileOrData(cluster, 'certificate-authority'),
    'insecure-skip-tls-verify': cluster.fields['insecure-skip-tls-verify'],
    'tls-server-name': textField(cluster, 'tls-server-name'),
  };
}

function userFields(user: KubeconfigEntry): Fields {
  const tokenFile = pathField(user, 'tokenFile');
  return {
    ...Object.fromEntries(['username', 'password', 'as'].map((key) => [key, textField(user, key)])),
    ...fileOrData(user, 'client-certificate'),
    ...fileOrData(user, 'client-key'),
    exec: execField(user),
    // The package does not know `tokenFile`, but has an auth provider that does the same. As in kubectl, the file
    // takes precedence over a token in the same entry.
    ...(tokenFile === undefined
      ? { token: textField(user, 'token'), 'auth-provider': authProvider(user) }
      : { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } }),
  };
}

/** Data takes precedence over a file, as the API reference of the kubeconfig says; for the package, the file does. */
function fileOrData(entry: KubeconfigEntry, key: string): Fields {
  const data = textField(entry, `${key}-data`);
  return data === undefined ? { [key]: pathField(entry, key) } : { [`${key}-data`]: data };
}

/** The auth provider with its paths made absolute. */
function authProvider(user: KubeconfigEntry): unknown {
  const provider = user.fields['auth-provider'];
  if (!isObject(provider) || !isObject(provider['config'])) return provider;
  const entry = { ...user, fields: provider['config'], label: `auth-provider of ${user.label}` };
  const paths = ['tokenFile', 'idp-certificate-authority'].map((key) => [key, pathField(entry, key)] as const);
  return {
    ...provider,
    config: { ...entry.fields, ...Object.fromEntries(paths.filter(([, path]) => path !== undefined)) },
  };
}

function credentialsOf(config: KubeConfig, source: string): ClusterAccess['credentials'] {
  const user = config.getCurrentUser();
  const oidc = oidcSettings(user);
  if (oidc === undefined) return authenticated(config, source);
  // As in kubectl, a token takes precedence over the auth provider.
  if (Boolean(user?.token)) return authenticated(withToken(config, user?.token), source);
  return withIdToken(config, new OidcTokenSource(oidc), source);
}

function authenticated(config: KubeConfig, source: string): ClusterAccess['credentials'] {
  let current = config;
  return async (rejected) => {
    // Authenticators' caches cannot be cleared, so the config is copied: after a 401, and at each renewal of
    // what they would otherwise cache (token files). An exec plugin is run again only when it has to be.
    const expiry = ExecCredentialCache.of(current);
    if (rejected || !expiry.isUsable(Date.now())) current = copyOf(config);
    else if (expiry.credentials !== undefined) return expiry.credentials;
    const credentials = await resolveCredentials(current, source);
    return ExecCredentialCache.store(current, credentials);
  };
}

function withIdToken(config: KubeConfig, tokens: OidcTokenSource, source: string): ClusterAccess['credentials'] {
  return async (rejected) => {
    const { token, expiresAt } = await tokens.get(rejected).catch((error: unknown) => {
      throw new KubeconfigError(`${source}: no credentials: ${errorMessage(error)}.`);
    });
    const credentials = await resolveCredentials(withToken(config, token), source);
    return expiresAt === undefined ? credentials : { ...credentials, expiresAt };
  };
}

/**
 * A copy in which the current user has a plain token instead of the auth provider `oidc`, whose own refresh
 * fails.
 */
function withToken(config: KubeConfig, token: string | undefined): KubeConfig {
  const name = config.getCurrentUser()?.name;
  const copy = copyOf(config);
  copy.users = config.users.map((user) => (user.name === name ? { ...user, authProvider: null, token } : user));
  return copy;
}

function copyOf(config: KubeConfig): KubeConfig {
  const copy = new KubeConfig();
  copy.loadFromOptions(config);
  return copy;
}

async function resolveCredentials(config: KubeConfig, source: string): Promise<Credentials> {
  const options: HttpsOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    // When a plugin's output is not JSON, the parser's message quotes it, token included.
    const why =
      (error as Partial<Error> | undefined)?.name === 'SyntaxError'
        ? 'the exec plugin did not print an ExecCredential in JSON'
        : errorMessage(error);
    throw new KubeconfigError(`${source}: no credentials: ${why.trim()}`);
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // A token file may end in a newline, which no header may.
    if (value !== undefined) headers[name.toLowerCase()] = String(value).trim();
  }
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return { headers, tls: tlsFrom(options) };
}

function tlsFrom(options: HttpsOptions): TlsSettings {
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    ...(isBytes(ca) ? { ca } : {}),
    ...(isBytes(cert) ? { cert } : {}),
    ...(isBytes(key) ? { key } : {}),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === false ? { rejectUnauthorized } : {}),
  };
}

function isBytes(value: unknown): value is string | Buffer {
  return typeof value === 'string' || Buffer.isBuffer(value);
}
