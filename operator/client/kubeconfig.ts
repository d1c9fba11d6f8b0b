import { errorMessage } from '../../constructs/kube/errors';
import { accessSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { RequestOptions as HttpsOptions } from 'node:https';
// Only this module of the package: its request and informer code is not used, and a bundler can leave it out.
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { newClusters, newContexts, newUsers } from '@kubernetes/client-node/dist/config_types.js';
import { load as loadYaml } from 'js-yaml';
import type { ClusterAccess, Credentials, TlsSettings } from './cluster-access';
import { ExecCredentialCache, setExecInfo } from './exec-plugin';
import { OidcTokenSource, oidcSettings } from './oidc';

/** Where to find the cluster and the credentials. */
export interface KubeconfigOptions {
  /** A kubeconfig file. @default KUBECONFIG, then the pod's own ServiceAccount, then ~/.kube/config */
  readonly path?: string;
  /** @default the file's current-context */
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
 * pod, else ~/.kube/config.
 * @throws KubeconfigError when nothing is found, or what is found names no server.
 */
export function loadClusterAccess(options: KubeconfigOptions = {}): ClusterAccess {
  const { config, source } = load(options);
  if (options.context !== undefined) config.setCurrentContext(options.context);
  return accessFrom(config, source);
}

/**
 * Access through a kubeconfig that the caller has as text, for example from a Secret.
 * @param source names it in errors
 * @throws KubeconfigError
 */
export function clusterAccessFromText(text: string, source: string): ClusterAccess {
  return accessFrom(parse(text, source), source);
}

/** The kubeconfig cannot be used as it is. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

function load(options: KubeconfigOptions): { readonly config: KubeConfig; readonly source: string } {
  const env = options.env ?? process.env;
  if (options.path !== undefined) return { config: readFile(options.path), source: options.path };
  const files = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  if (files.length > 0) return { config: merge(files), source: files.join(delimiter) };
  const prefix = options.rootPrefix ?? '';
  if (env['KUBERNETES_SERVICE_HOST'] !== undefined && exists(prefix + SERVICE_ACCOUNT_TOKEN)) {
    const config = new KubeConfig();
    config.loadFromCluster(prefix);
    return { config, source: 'the ServiceAccount of this pod' };
  }
  const file = join(options.home ?? homedir(), '.kube', 'config');
  if (exists(file)) return { config: readFile(file), source: file };
  throw new KubeconfigError(
    `No cluster to talk to: KUBECONFIG is not set, this is no pod with a ServiceAccount, and ${file} does not exist. ` +
      'Name a kubeconfig file, or set KUBECONFIG.',
  );
}

function exists(file: string): boolean {
  try {
    accessSync(file);
    return true;
  } catch {
    return false;
  }
}

function merge(files: readonly string[]): KubeConfig {
  const config = new KubeConfig();
  for (const file of files) {
    try {
      // As in kubectl: the first file that names a current context decides.
      config.mergeConfig(readFile(file), ((config.currentContext as string | undefined) ?? '') !== '');
    } catch (error) {
      if (error instanceof KubeconfigError) throw error;
      throw new KubeconfigError(`${file} repeats what another file of KUBECONFIG defines: ${errorMessage(error)}.`, {
        cause: error,
      });
    }
  }
  return config;
}

function readFile(file: string): KubeConfig {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeconfigError(
      `The kubeconfig ${file} cannot be read: ${errorMessage(error)}. Check the path and its permissions.`,
      {
        cause: error,
      },
    );
  }
  const config = parse(text, file);
  const folder = dirname(resolve(file));
  config.makePathsAbsolute(folder);
  for (const { authProvider } of config.users as readonly { readonly authProvider?: unknown }[]) {
    const settings = (authProvider as { readonly config?: Record<string, unknown> | null } | null | undefined)?.config;
    for (const name of ['tokenFile', 'idp-certificate-authority']) {
      const path = settings?.[name];
      if (settings && typeof path === 'string' && path !== '') settings[name] = resolve(folder, path);
    }
  }
  return config;
}

function parse(text: string, source: string): KubeConfig {
  const { clusters, contexts, users, 'current-context': currentContext } = parseYaml(text, source);
  const config = new KubeConfig();
  try {
    config.loadFromOptions({
      clusters: newClusters(clusters),
      contexts: newContexts(contexts),
      users: newUsers(Array.isArray(users) ? users.map(withTokenFile) : users),
      currentContext,
    });
  } catch (error) {
    throw new KubeconfigError(`${source} is not a kubeconfig: ${errorMessage(error)}.`);
  }
  if (config.clusters.length === 0 && config.contexts.length === 0) {
    throw new KubeconfigError(`${source} is not a kubeconfig: it defines no clusters and no contexts.`);
  }
  return config;
}

function parseYaml(text: string, source: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = loadYaml(text);
  } catch (error) {
    // The YAML parser's message quotes the file, keys and tokens included: only the position is reported.
    const { mark } = error as { readonly mark?: { readonly line: number; readonly column: number } };
    const where = mark === undefined ? '' : ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new KubeconfigError(`${source} is not a kubeconfig: it is not valid YAML${where}.`);
  }
  if (isMapping(document)) return document;
  throw new KubeconfigError(`${source} is not a kubeconfig: it defines no clusters and no contexts.`);
}

/**
 * The library does not know `tokenFile`, but has an auth provider that does the same. As in kubectl, the file
 * takes precedence over a token in the same entry.
 */
function withTokenFile(entry: unknown, index: number): unknown {
  if (!isMapping(entry) || !isMapping(entry['user'])) return entry;
  const { tokenFile, ...user } = entry['user'];
  if (tokenFile === undefined || tokenFile === null || tokenFile === '') return entry;
  if (typeof tokenFile !== 'string') throw new Error(`users[${index}].user.tokenFile is not text`);
  return {
    ...entry,
    user: { ...user, token: undefined, 'auth-provider': { name: 'tokenFile', config: { tokenFile } } },
  };
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function accessFrom(config: KubeConfig, source: string): ClusterAccess {
  const { server, namespace } = check(config, source);
  setExecInfo(config);
  return { server, ...(namespace === undefined ? {} : { namespace }), credentials: credentialsOf(config, source) };
}

function check(config: KubeConfig, source: string): { readonly server: string; readonly namespace?: string } {
  const name = config.getCurrentContext() as string | undefined;
  const known = config.contexts.map((context) => context.name).join(', ') || 'none';
  if (name === undefined || name === '') {
    throw new KubeconfigError(`${source} has no current-context; name one of its contexts (${known}).`);
  }
  const context = config.getContextObject(name);
  if (context === null)
    throw new KubeconfigError(`${source} has no context ${JSON.stringify(name)}; it has: ${known}.`);
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new KubeconfigError(
      `${source}: context ${name} is for cluster ${JSON.stringify(context.cluster)}, which is not defined there.`,
    );
  }
  if (config.getCurrentUser() === null) {
    throw new KubeconfigError(
      `${source}: context ${name} is for user ${JSON.stringify(context.user)}, who is not defined there.`,
    );
  }
  if (cluster.proxyUrl !== undefined) {
    throw new KubeconfigError(
      `${source}: cluster ${cluster.name} has a proxy-url, which is not supported; reach the server directly.`,
    );
  }
  if (!/^https?:\/\/[^/]/.test(cluster.server) || !URL.canParse(cluster.server)) {
    throw new KubeconfigError(
      `${source}: cluster ${cluster.name} has the server ${JSON.stringify(cluster.server)}, which is no http(s) URL.`,
    );
  }
  const { namespace } = context;
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(namespace === undefined ? {} : { namespace: namespace.trim() }),
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
