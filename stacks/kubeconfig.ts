import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { load as loadYaml } from 'js-yaml';
import { isObject } from '../constructs/kube/kube-object';
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
 * exist are skipped. Without it the file is `~/.kube/config`, and in a pod without that file the pod's
 * ServiceAccount is used. Paths are relative to the file that contains them. The result contains
 * certificates, keys and tokens themselves; no file path, user name or context name of this machine; and an
 * exec plugin by its bare name if `PATH` leads to the same program. The same cluster and user always give the
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
  const merged = source.text === undefined ? fromFiles(source) : fromText(source.text);
  if (merged === undefined) return fromServiceAccount(source);
  const { name, cluster, user } = selectContext(merged, source.context);
  const path = (source.env ?? process.env)['PATH'] ?? '';
  return kubeconfigOf(clusterFields(cluster, name), user === undefined ? {} : userFields(user, path));
}

type Fields = Readonly<Record<string, unknown>>;

/** An entry of a kubeconfig's clusters, users or contexts. */
interface Entry {
  readonly fields: Fields;
  /** Directory of its file, to which paths are relative; undefined if the kubeconfig was given as text. */
  readonly folder: string | undefined;
  /** The file, as errors name it. */
  readonly source: string;
}

interface MergedKubeconfig {
  readonly sources: string;
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
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

function fromText(text: string): MergedKubeconfig {
  return merge([parse(text, 'the kubeconfig', undefined)], 'the kubeconfig');
}

/** @returns undefined if there is no kubeconfig, and the pod's ServiceAccount is to be used */
function fromFiles({ env = process.env, home = homedir(), ...source }: KubeconfigSource): MergedKubeconfig | undefined {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  const files = [...new Set(named.length > 0 ? named : [join(home, '.kube', 'config')])];
  const found = files.filter((file) => existsSync(file));
  if (found.length > 0) return merge(found.map(readFile), found.join(delimiter));
  if (source.context === undefined && env['KUBERNETES_SERVICE_HOST'] !== undefined) return undefined;
  const where = named.length > 0 ? `KUBECONFIG names ${files.join(delimiter)}` : `KUBECONFIG is not set`;
  const missing = named.length > 0 ? 'none of which exists' : `and ${files.join('')} does not exist`;
  throw new KubeconfigError(
    `there is no kubeconfig: ${where}, ${missing}. Set KUBECONFIG to a file that leads to the cluster, or give its text`,
  );
}

function fromServiceAccount({ env = process.env, ...source }: KubeconfigSource): string {
  const folder = source.serviceAccount ?? '/var/run/secrets/kubernetes.io/serviceaccount';
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${env['KUBERNETES_SERVICE_PORT'] ?? '443'}`;
  const entry = { folder, source: "this pod's ServiceAccount" };
  const cluster = { ...entry, fields: { server, 'certificate-authority': 'ca.crt' } };
  const user = { ...entry, fields: { tokenFile: 'token' } };
  return kubeconfigOf(clusterFields(cluster, 'of this pod'), userFields(user, ''));
}

interface ParsedKubeconfig {
  readonly currentContext: string | undefined;
  readonly entries: (list: 'clusters' | 'users' | 'contexts') => readonly (readonly [name: string, entry: Entry])[];
}

function readFile(file: string): ParsedKubeconfig {
  return parse(textOf(file, 'the kubeconfig'), file, dirname(resolve(file)));
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

function parse(text: string, source: string, folder: string | undefined): ParsedKubeconfig {
  const document = yaml(text, source);
  const { 'current-context': current } = document;
  return {
    currentContext: typeof current === 'string' && current !== '' ? current : undefined,
    entries: (list) => {
      const found = document[list] ?? [];
      const inner = list.slice(0, -1);
      if (!Array.isArray(found)) throw new KubeconfigError(`${source} is no kubeconfig: ${list} is not a list`);
      const names = new Set<string>();
      return found.map((item: unknown, i) => {
        const name = isObject(item) ? item['name'] : undefined;
        const fields = isObject(item) ? (item[inner] ?? {}) : undefined;
        if (typeof name !== 'string' || !isObject(fields)) {
          throw new KubeconfigError(`${source} is no kubeconfig: ${list}[${i}] must have a name and a ${inner}`);
        }
        if (names.has(name)) throw new KubeconfigError(`${source} is no kubeconfig: ${list} has "${name}" twice`);
        names.add(name);
        return [name, { fields, folder, source }] as const;
      });
    },
  };
}

function yaml(text: string, source: string): Fields {
  let document: unknown;
  try {
    document = loadYaml(text);
  } catch (error) {
    // The parser's message quotes the text, which contains keys and tokens, so only the position is passed
    // on.
    const { mark } = error as { readonly mark?: { readonly line: number; readonly column: number } };
    const where = mark === undefined ? '' : `: line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new KubeconfigError(`${source} is no valid YAML${where}`);
  }
  // As in kubectl, an empty file is no error.
  if (document === undefined || document === null) return {};
  if (isObject(document)) return document;
  throw new KubeconfigError(`${source} is no kubeconfig: it must be an object with clusters, contexts and users`);
}

/** As in kubectl, the first file to define an entry wins. */
function merge(parsed: readonly ParsedKubeconfig[], sources: string): MergedKubeconfig {
  const all = (list: 'clusters' | 'users' | 'contexts'): ReadonlyMap<string, Entry> =>
    new Map([...parsed].reverse().flatMap(({ entries }) => [...entries(list)]));
  return {
    sources,
    currentContext: parsed.find(({ currentContext }) => currentContext !== undefined)?.currentContext,
    ...{ clusters: all('clusters'), users: all('users'), contexts: all('contexts') },
  };
}

interface SelectedContext {
  readonly name: string;
  readonly cluster: Entry;
  readonly user: Entry | undefined;
}

function selectContext(
  { sources, currentContext, clusters, users, contexts }: MergedKubeconfig,
  asked: string | undefined,
): SelectedContext {
  const known = [...contexts.keys()].sort().join(', ');
  const there = known === '' ? 'there is none' : `there are ${known}`;
  const name = asked ?? currentContext;
  if (name === undefined) {
    throw new KubeconfigError(`${sources} has no current-context: name one of its contexts; ${there}`);
  }
  const context = contexts.get(name);
  if (context === undefined) throw new KubeconfigError(`there is no context "${name}" in ${sources}; ${there}`);
  const { cluster: clusterName, user: userName } = context.fields;
  const cluster = typeof clusterName === 'string' ? clusters.get(clusterName) : undefined;
  if (cluster === undefined) {
    throw new KubeconfigError(
      `the context "${name}" of ${context.source} names the cluster ${quoteName(clusterName)}, which ${sources} does not define`,
    );
  }
  if (userName === undefined || userName === '') return { name, cluster, user: undefined };
  const user = typeof userName === 'string' ? users.get(userName) : undefined;
  if (user !== undefined) return { name, cluster, user };
  throw new KubeconfigError(
    `the context "${name}" of ${context.source} names the user ${quoteName(userName)}, which ${sources} does not define`,
  );
}

function quoteName(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : 'of no name';
}

/** Fields of a cluster that say how to reach it. Source: Kubernetes API reference, kubeconfig v1, Cluster. */
const ofCluster = ['server', 'tls-server-name', 'insecure-skip-tls-verify', 'proxy-url', 'disable-compression'];

/** The extension that client-go passes to an exec plugin; other extensions are notes of tools. */
const FOR_EXEC = 'client.authentication.k8s.io/exec';

function clusterFields(entry: Entry, context: string): Fields {
  const { fields, source } = entry;
  const { server, extensions } = fields;
  if (typeof server !== 'string' || !/^https?:\/\/[^/]/.test(server) || !URL.canParse(server)) {
    throw new KubeconfigError(`the cluster of the context "${context}" in ${source} has no server, an http(s) URL`);
  }
  const told = Array.isArray(extensions)
    ? extensions.filter((one: unknown) => isObject(one) && one['name'] === FOR_EXEC)
    : [];
  return {
    ...Object.fromEntries(ofCluster.filter((key) => fields[key] !== undefined).map((key) => [key, fields[key]])),
    ...embedFile(entry, 'certificate-authority'),
    ...(told.length === 0 ? {} : { extensions: told }),
  };
}

function userFields(entry: Entry, path: string): Fields {
  const left = ['client-certificate', 'client-key'].flatMap((key) => [key, `${key}-data`]);
  const gone = [...left, 'tokenFile', 'extensions', 'exec', 'auth-provider'];
  const { exec, tokenFile, 'auth-provider': provider } = entry.fields;
  const file = fileOf(entry, 'tokenFile', tokenFile);
  return {
    ...Object.fromEntries(Object.entries(entry.fields).filter(([key]) => !gone.includes(key))),
    ...embedFile(entry, 'client-certificate'),
    ...embedFile(entry, 'client-key'),
    // As in client-go, the file takes precedence over a token in the same entry.
    ...(file === undefined ? {} : { token: textOf(file, 'the token').trim() }),
    ...(isObject(provider) ? { 'auth-provider': { ...provider, ...authConfig(entry, provider['config']) } } : {}),
    ...(isObject(exec) ? { exec: { ...exec, command: commandOf(entry, exec['command'], path) } } : {}),
  };
}

/** Settings of an auth provider. Source: client-go, plugin/pkg/client/auth/oidc. */
function authConfig(entry: Entry, config: unknown): Fields {
  if (!isObject(config)) return {};
  const authority = 'idp-certificate-authority';
  const rest = Object.entries(config).filter(([key]) => key !== authority);
  return { config: { ...Object.fromEntries(rest), ...embedFile({ ...entry, fields: config }, authority) } };
}

/** The content of a file instead of its path. Data in the same entry takes precedence over the path. */
function embedFile(entry: Entry, key: string): Fields {
  const data = `${key}-data`;
  const { [data]: given, [key]: path } = entry.fields;
  if (typeof given === 'string' && given !== '') return { [data]: given };
  const file = fileOf(entry, key, path);
  return file === undefined ? {} : { [data]: Buffer.from(textOf(file, `the ${key}`)).toString('base64') };
}

function fileOf({ folder, source }: Entry, key: string, path: unknown): string | undefined {
  if (typeof path !== 'string' || path === '') return undefined;
  if (isAbsolute(path)) return path;
  if (folder !== undefined) return resolve(folder, path);
  throw new KubeconfigError(
    `${key} of ${source} is the relative path ${path}, and a text lies in no folder: write the file into it with ` +
      '`kubectl config view --raw --flatten --minify`',
  );
}

/**
 * The command of an exec plugin. A path on this machine is replaced by the bare name if `PATH` leads to the
 * same file, so that the command works on other machines too.
 */
function commandOf({ folder }: Entry, command: unknown, path: string): unknown {
  if (typeof command !== 'string' || basename(command) === command) return command;
  const file = resolve(folder ?? '.', command);
  const first = path
    .split(delimiter)
    .filter((place) => place !== '')
    .map((place) => join(place, basename(command)))
    .find((candidate) => existsSync(candidate));
  return first !== undefined && existsSync(file) && realpathSync(first) === realpathSync(file)
    ? basename(command)
    : file;
}
