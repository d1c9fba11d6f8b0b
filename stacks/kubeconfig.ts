import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, isAbsolute, join, resolve } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { isObject } from '../constructs/kube/kube-object';
import {
  execField,
  KubeconfigError as InvalidKubeconfigError,
  loadKubeconfig,
  parseKubeconfig,
  pathField,
  selectContext,
  serverOf,
  textField,
  type Kubeconfig,
  type KubeconfigEntry,
} from '../operator/client/kubeconfig-files';
import { sortKeys } from './bridge/content-hash';

/**
 * A kubeconfig leads to no cluster. Pulumi shows the message without a stack trace; it contains no
 * credential.
 *
 * @testonly
 */
export class KubeconfigError extends pulumi.RunError {
  override readonly name = 'KubeconfigError';
}

/** Where a kubeconfig is read from. */
export interface KubeconfigSource {
  /** Text of a kubeconfig. @default the files of {@link env} */
  readonly text?: string;
  /** @default the `current-context` */
  readonly context?: string;
  /** `KUBECONFIG`, `PATH`, and in a pod the variables with the API server's address. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The home directory, in which `.kube/config` is looked up. @default the user's */
  readonly home?: string;
  /** Where a pod's ServiceAccount is mounted. @default /var/run/secrets/kubernetes.io/serviceaccount */
  readonly serviceAccount?: string;
}

/**
 * A kubeconfig with the cluster and the user of one context only, read from files as kubectl reads them.
 *
 * Guarantees: `KUBECONFIG` may name several files; the first to define an entry wins, and files that do not
 * exist are skipped. Without it the file is `~/.kube/config`. In a pod, its ServiceAccount is used if the files
 * name no current context and none is asked for. Paths are relative to the file that contains them. The result
 * contains certificates, keys and tokens themselves; no file path, user name or context name of this machine; and
 * an exec plugin by its bare name if `PATH` leads to the same program. The same cluster and user always give the
 * same text.
 *
 * Caveats: it contains credentials. A token from a file is the one that was there when this ran.
 *
 * Source: Kubernetes documentation, "Organizing cluster access using kubeconfig files" and "client-go
 * credential plugins".
 *
 * @throws KubeconfigError saying what is wrong and where; for a context that does not exist, with the
 *   existing ones
 */
export function minifyKubeconfig(source: KubeconfigSource = {}): string {
  try {
    return minify(source);
  } catch (error) {
    throw error instanceof InvalidKubeconfigError ? new KubeconfigError(error.message) : error;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function minify(source: KubeconfigSource): string {
  const env = source.env ?? process.env;
  const kubeconfig = load(source, env);
  const { cluster, user } = selectContext(kubeconfig, source.context);
  return kubeconfigOf(clusterFields(cluster), user === undefined ? {} : userFields(user, env['PATH'] ?? ''));
}

function load(source: KubeconfigSource, env: NonNullable<KubeconfigSource['env']>): Kubeconfig {
  if (source.text !== undefined) return parseKubeconfig(source.text, 'the kubeconfig');
  return loadKubeconfig({
    ...{ env, home: source.home ?? homedir(), context: source.context, first: 'home' },
    serviceAccount: source.serviceAccount ?? '/var/run/secrets/kubernetes.io/serviceaccount',
  });
}

function kubeconfigOf(cluster: Fields, user: Fields): string {
  return JSON.stringify(
    sortKeys({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'context' },
      clusters: [{ name: 'cluster', cluster }],
      contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
      users: [{ name: 'user', user }],
    }),
  );
}

function textOf(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeconfigError(`${what} ${file} cannot be read (${codeOf(error)}): check the path and its permissions`);
  }
}

function codeOf(error: unknown): string {
  return (error as { readonly code?: string }).code ?? 'no reason is known';
}

/** Fields of a cluster that say how to reach it. Source: Kubernetes API reference, kubeconfig v1, Cluster. */
const ofCluster = ['tls-server-name', 'insecure-skip-tls-verify', 'proxy-url', 'disable-compression'];

/** The extension that client-go passes to an exec plugin; other extensions are notes of tools. */
const FOR_EXEC = 'client.authentication.k8s.io/exec';

function clusterFields(entry: KubeconfigEntry): Fields {
  const { fields } = entry;
  const { extensions } = fields;
  const told = Array.isArray(extensions)
    ? extensions.filter((one: unknown) => isObject(one) && one['name'] === FOR_EXEC)
    : [];
  return {
    server: serverOf(entry),
    ...Object.fromEntries(ofCluster.filter((key) => fields[key] !== undefined).map((key) => [key, fields[key]])),
    ...embedFile(entry, 'certificate-authority'),
    ...(told.length === 0 ? {} : { extensions: told }),
  };
}

function userFields(entry: KubeconfigEntry, path: string): Fields {
  const left = ['client-certificate', 'client-key'].flatMap((key) => [key, `${key}-data`]);
  const gone = [...left, 'tokenFile', 'extensions', 'exec', 'auth-provider'];
  const provider = entry.fields['auth-provider'];
  const exec = execField(entry);
  const file = fileOf(entry, 'tokenFile');
  return {
    ...Object.fromEntries(Object.entries(entry.fields).filter(([key]) => !gone.includes(key))),
    ...embedFile(entry, 'client-certificate'),
    ...embedFile(entry, 'client-key'),
    // As in client-go, the file takes precedence over a token in the same entry.
    ...(file === undefined ? {} : { token: textOf(file, 'the token').trim() }),
    ...(isObject(provider) ? { 'auth-provider': { ...provider, ...authConfig(entry, provider['config']) } } : {}),
    ...(exec === undefined ? {} : { exec: { ...exec, command: commandOf(exec['command'], path) } }),
  };
}

/** Settings of an auth provider. Source: client-go, plugin/pkg/client/auth/oidc. */
function authConfig(entry: KubeconfigEntry, config: unknown): Fields {
  if (!isObject(config)) return {};
  const authority = 'idp-certificate-authority';
  const rest = Object.entries(config).filter(([key]) => key !== authority);
  return { config: { ...Object.fromEntries(rest), ...embedFile({ ...entry, fields: config }, authority) } };
}

/** The content of a file instead of its path. Data in the same entry takes precedence over the path. */
function embedFile(entry: KubeconfigEntry, key: string): Fields {
  const data = `${key}-data`;
  const given = textField(entry, data);
  if (given !== undefined) return { [data]: given };
  const file = fileOf(entry, key);
  return file === undefined ? {} : { [data]: Buffer.from(textOf(file, `the ${key}`)).toString('base64') };
}

function fileOf(entry: KubeconfigEntry, key: string): string | undefined {
  const path = pathField(entry, key);
  if (path === undefined || isAbsolute(path)) return path;
  throw new KubeconfigError(
    `${key} of ${entry.source} is the relative path ${path}, and a text lies in no folder: write the file into it with ` +
      '`kubectl config view --raw --flatten --minify`',
  );
}

/**
 * The command of an exec plugin. A path on this machine is replaced by the bare name if `PATH` leads to the
 * same file, so that the command works on other machines too.
 */
function commandOf(command: unknown, path: string): unknown {
  if (typeof command !== 'string' || basename(command) === command) return command;
  // In a kubeconfig given as text it may be relative to the working directory.
  const file = resolve(command);
  const first = path
    .split(delimiter)
    .filter((place) => place !== '')
    .map((place) => join(place, basename(command)))
    .find((candidate) => existsSync(candidate));
  const isSame = first !== undefined && existsSync(file) && realpathSync(first) === realpathSync(file);
  return isSame ? basename(command) : file;
}
