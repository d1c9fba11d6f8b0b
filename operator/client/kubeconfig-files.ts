import { readFileSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { CORE_SCHEMA, loadAll, Type } from 'js-yaml';
import { errorMessage } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';

/** The kubeconfig cannot be used as it is. The message names the file, and holds no key and no token. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

/** A cluster, a user or a context of a kubeconfig. */
export interface KubeconfigEntry {
  readonly fields: Readonly<Record<string, unknown>>;
  /** For errors, such as `the user "admin"`. */
  readonly label: string;
  /** The directory of its file, absolute: its paths are relative to it. Undefined for a kubeconfig that was given as text. */
  readonly folder: string | undefined;
  /** The file, as errors name it. */
  readonly source: string;
}

/** One kubeconfig, or several merged. */
export interface Kubeconfig {
  /** The files that were read, as errors name them. */
  readonly source: string;
  /** Never empty. */
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, KubeconfigEntry>;
  readonly users: ReadonlyMap<string, KubeconfigEntry>;
  readonly contexts: ReadonlyMap<string, KubeconfigEntry>;
}

/** Where `loadKubeconfig` looks. */
export interface KubeconfigSearch {
  /** `KUBECONFIG`, and in a pod `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home directory: `.kube/config` in it is read where `KUBECONFIG` is not set. */
  readonly home: string;
  /** The context that was asked for. @default the files' `current-context` */
  readonly context?: string | undefined;
  /** Where a pod's ServiceAccount is mounted. */
  readonly serviceAccount: string;
  /**
   * Which of the two comes first where `KUBECONFIG` is not set: `home`, as in kubectl, or `pod`, as in
   * controller-runtime, so that a file in the image of an operator does not lead it away from its cluster.
   */
  readonly first: 'home' | 'pod';
}

/**
 * Loads the kubeconfig by the rules of kubectl, which are those of client-go.
 *
 * Guarantees:
 * - `KUBECONFIG` is a list of files. Empty entries and files that do not exist are skipped; a file may be empty.
 *   Of two files with an entry of the same name, the whole entry of the first is taken, and the first
 *   `current-context` that is not empty. Nothing is trimmed. `~/.kube/config` is not read where `KUBECONFIG`
 *   is set, whatever it names.
 * - In a pod, the ServiceAccount is used if the files name no current context and none is asked for. It has no
 *   contexts, so it is never used where one is asked for.
 *
 * Source: `ClientConfigLoadingRules.Load` and `DeferredLoadingClientConfig` of k8s.io/client-go/tools/clientcmd.
 *
 * @throws KubeconfigError if no file defines a context, saying so of each; for a file that exists and cannot be
 *   read or is not a kubeconfig, even if another one would do
 */
export function loadKubeconfig({ env, home, context = '', serviceAccount, first }: KubeconfigSearch): Kubeconfig {
  const named = env['KUBECONFIG'] ?? '';
  const pod = context === '' ? podKubeconfig(env, serviceAccount) : undefined;
  if (named === '' && first === 'pod' && pod !== undefined) return pod;
  const list = named === '' ? [join(home, '.kube', 'config')] : named.split(delimiter);
  const files = [...new Set(list)].filter((file) => file !== '');
  const found = files.flatMap((file) => readIfExists(file) ?? []);
  const merged = mergeKubeconfigs(found);
  if (pod !== undefined && merged.currentContext === undefined) return pod;
  if (merged.contexts.size > 0) return merged;
  const existing = new Set(found.map(({ source }) => source));
  const each = files.map((file) => `"${file}" ${existing.has(file) ? 'defines no contexts' : 'does not exist'}`);
  const reasons = each.length === 0 ? 'it names no file' : each.join(', ');
  const where = named === '' ? `KUBECONFIG is not set, ${reasons}` : `KUBECONFIG leads to no cluster: ${reasons}`;
  const noPod = context === '' ? ', and this is no pod with a ServiceAccount' : '';
  throw new KubeconfigError(`${where}${noPod}. Set KUBECONFIG to a kubeconfig file of the cluster`);
}

/**
 * Reads a file that was asked for by name, alone.
 *
 * @throws KubeconfigError if it does not exist, cannot be read, is not a kubeconfig or defines no contexts.
 *   client-go takes the pod's ServiceAccount in place of an empty file: whoever names a file means that file.
 */
export function readKubeconfig(file: string): Kubeconfig {
  return withContexts(parse(readText(file), file, dirname(resolve(file))));
}

/**
 * A kubeconfig given as text. Paths in it are relative to no file.
 *
 * @param source - names it in errors
 * @throws KubeconfigError if it is not a kubeconfig, or defines no contexts
 */
export function parseKubeconfig(text: string, source: string): Kubeconfig {
  return withContexts(parse(text, source, undefined));
}

/** A context with the cluster and the user that it names. */
export interface SelectedContext {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly cluster: KubeconfigEntry;
  /** Undefined if the context names none: requests are anonymous. */
  readonly user: KubeconfigEntry | undefined;
}

/**
 * The context that was asked for, or else the current one.
 *
 * @throws KubeconfigError if there is no such context, or its cluster or user is not defined. With an undefined
 *   cluster, client-go looks for another configuration, and with an undefined user it sends anonymous requests;
 *   a name that leads nowhere is a mistake.
 */
export function selectContext(kubeconfig: Kubeconfig, asked: string | undefined): SelectedContext {
  const { source, currentContext, contexts } = kubeconfig;
  const known = [...contexts.keys()].sort().join(', ');
  const name = asked === undefined || asked === '' ? currentContext : asked;
  if (name === undefined) {
    throw new KubeconfigError(`${source} has no current-context: name one of its contexts; there are ${known}`);
  }
  const context = contexts.get(name);
  if (context === undefined) {
    throw new KubeconfigError(`there is no context "${name}" in ${source}; there are ${known}`);
  }
  const clusterName = textField(context, 'cluster');
  const cluster = kubeconfig.clusters.get(clusterName ?? '');
  if (cluster === undefined) throw undefinedName(kubeconfig, context, 'cluster', clusterName);
  const namespace = textField(context, 'namespace');
  const userName = textField(context, 'user');
  const user = userName === undefined ? undefined : kubeconfig.users.get(userName);
  if (userName !== undefined && user === undefined) throw undefinedName(kubeconfig, context, 'user', userName);
  return { name, namespace, cluster, user };
}

/**
 * The server of a cluster, an http(s) URL.
 *
 * @throws KubeconfigError if there is none
 */
export function serverOf(cluster: KubeconfigEntry): string {
  const server = textField(cluster, 'server');
  if (server !== undefined && /^https?:\/\/[^/]/.test(server) && URL.canParse(server)) return server;
  const has = server === undefined ? 'no server' : `the server "${server}"`;
  throw new KubeconfigError(`${cluster.source}: ${cluster.label} has ${has}; it must be an http(s) URL`);
}

/**
 * A field that is text.
 *
 * @returns undefined if it is absent or empty
 * @throws KubeconfigError if it is something else
 */
export function textField({ fields, source, label }: KubeconfigEntry, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw new KubeconfigError(`${source}: ${key} of ${label} is not text; put it in quotes`);
}

/**
 * A field that is a path, absolute: a relative path is relative to the directory of its kubeconfig. In a
 * kubeconfig given as text it stays as it is.
 *
 * @returns undefined if it is absent or empty
 * @throws KubeconfigError if it is not text
 */
export function pathField(entry: KubeconfigEntry, key: string): string | undefined {
  const path = textField(entry, key);
  return path === undefined || entry.folder === undefined ? path : resolve(entry.folder, path);
}

/**
 * The `exec` of a user. A command with a slash in it is a path, made absolute like the other paths; one without
 * is looked up in `PATH`.
 *
 * @returns undefined if there is none
 * @throws KubeconfigError if it is no mapping, or its command is not text
 */
export function execField(user: KubeconfigEntry): Readonly<Record<string, unknown>> | undefined {
  const exec = user.fields['exec'] ?? undefined;
  if (exec === undefined) return undefined;
  if (!isObject(exec)) throw new KubeconfigError(`${user.source}: exec of ${user.label} is not a mapping`);
  const inner = { ...user, fields: exec, label: `exec of ${user.label}` };
  const command = textField(inner, 'command');
  return command?.includes(sep) === true ? { ...exec, command: pathField(inner, 'command') } : exec;
}

function undefinedName(
  { source }: Kubeconfig,
  context: KubeconfigEntry,
  what: string,
  name: string | undefined,
): KubeconfigError {
  const named = name === undefined ? `no ${what}` : `the ${what} "${name}", which ${source} does not define`;
  return new KubeconfigError(`${context.label} of ${context.source} names ${named}`);
}

function withContexts(kubeconfig: Kubeconfig): Kubeconfig {
  if (kubeconfig.contexts.size > 0) return kubeconfig;
  throw new KubeconfigError(`${kubeconfig.source} is not a kubeconfig: it defines no contexts`);
}

/** The first to define an entry, and the first to name a current context, wins. */
function mergeKubeconfigs(all: readonly Kubeconfig[]): Kubeconfig {
  const entries = (list: List): ReadonlyMap<string, KubeconfigEntry> =>
    new Map([...all].reverse().flatMap((one) => [...one[list]]));
  return {
    source: all.map(({ source }) => source).join(delimiter),
    currentContext: all.find(({ currentContext }) => currentContext !== undefined)?.currentContext,
    ...{ clusters: entries('clusters'), users: entries('users'), contexts: entries('contexts') },
  };
}

function readIfExists(file: string): Kubeconfig | undefined {
  try {
    return parse(readText(file), file, dirname(resolve(file)));
  } catch (error) {
    // A path through a file (ENOTDIR) or a directory without permission (EACCES) is no missing file, as in client-go.
    const { cause } = error as { readonly cause?: { readonly code?: unknown } };
    if (cause?.code === 'ENOENT') return undefined;
    throw error;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const message = `${file} cannot be read as a kubeconfig: ${errorMessage(error)}; check the path and its permissions`;
    throw new KubeconfigError(message, { cause: error });
  }
}

type List = 'clusters' | 'users' | 'contexts';

function parse(text: string, source: string, folder: string | undefined): Kubeconfig {
  const document = parseYaml(text, source);
  const problem = (what: string): KubeconfigError => new KubeconfigError(`${source} is not a kubeconfig: ${what}`);
  for (const [key, value] of [
    ['apiVersion', 'v1'],
    ['kind', 'Config'],
  ] as const) {
    const given = document[key] ?? '';
    if (given !== '' && given !== value) throw problem(`its ${key} is not ${value}`);
  }
  const currentContext = document['current-context'] ?? '';
  if (typeof currentContext !== 'string') throw problem('current-context is not text; put it in quotes');
  const entries = (list: List): ReadonlyMap<string, KubeconfigEntry> => {
    const items = document[list] ?? [];
    if (!Array.isArray(items)) throw problem(`${list} is not a list`);
    const inner = list.slice(0, -1);
    const found = new Map<string, KubeconfigEntry>();
    for (const [i, item] of items.entries() as IterableIterator<[number, unknown]>) {
      const name = isObject(item) ? item['name'] : undefined;
      const fields = isObject(item) ? (item[inner] ?? {}) : undefined;
      if (typeof name !== 'string' || !isObject(fields)) throw problem(`${list}[${i}] must have a name and a ${inner}`);
      if (found.has(name)) throw problem(`${list} has "${name}" twice`);
      found.set(name, { fields, label: `the ${inner} "${name}"`, folder, source });
    }
    return found;
  };
  return {
    source,
    currentContext: currentContext === '' ? undefined : currentContext,
    ...{ clusters: entries('clusters'), users: entries('users'), contexts: entries('contexts') },
  };
}

/** As for kubectl, a date is text, and `<<` merges. */
const SCHEMA = CORE_SCHEMA.extend({
  implicit: [new Type('tag:yaml.org,2002:merge', { kind: 'scalar', resolve: (key: unknown) => key === '<<' })],
});

/** As for kubectl, the first document of a file counts, the last of two equal keys, and nothing at all is an empty kubeconfig. */
function parseYaml(text: string, source: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    [document] = loadAll(text, undefined, { schema: SCHEMA, json: true });
  } catch (error) {
    // The YAML parser's message quotes the file, keys and tokens included: only the position is reported.
    const { mark } = error as { readonly mark?: { readonly line: number; readonly column: number } };
    const where = mark === undefined ? '' : ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new KubeconfigError(`${source} is not a kubeconfig: it is not valid YAML${where}`);
  }
  if (document === undefined || document === null) return {};
  if (isObject(document)) return document;
  throw new KubeconfigError(`${source} is not a kubeconfig: it must be a mapping with clusters, contexts and users`);
}

/** @returns undefined if this is no pod with a ServiceAccount. Source: `rest.InClusterConfig` of client-go. */
function podKubeconfig(env: KubeconfigSearch['env'], folder: string): Kubeconfig | undefined {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env;
  if (host === '' || port === '' || !isFile(join(folder, 'token'))) return undefined;
  const source = 'the ServiceAccount of this pod';
  const entry = (fields: KubeconfigEntry['fields']): ReadonlyMap<string, KubeconfigEntry> =>
    new Map([['pod', { fields, label: source, folder, source }]]);
  const namespaceFile = join(folder, 'namespace');
  const namespace = isFile(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : '';
  return {
    source,
    currentContext: 'pod',
    clusters: entry({
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      'certificate-authority': 'ca.crt',
    }),
    users: entry({ tokenFile: 'token' }),
    contexts: entry({ cluster: 'pod', user: 'pod', namespace }),
  };
}

function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false;
  }
}
