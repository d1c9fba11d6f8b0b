import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import type { Diff } from '../engine/provider';
import {
  Secret,
  Unknown,
  changedKeys,
  covers,
  equal,
  isMap,
  plain,
  unwrap,
  type Plain,
  type Value,
  type Values,
} from '../engine/values';

/** Fields whose change replaces an object, by `group/kind`; `metadata.name` and `.namespace` of all (provider/pkg/provider/diff.go). */
const forceNew: Readonly<Record<string, readonly string[]>> = {
  'apps/DaemonSet': ['spec.selector'],
  'apps/Deployment': ['spec.selector'],
  'apps/StatefulSet': [
    'spec.podManagementPolicy',
    'spec.revisionHistoryLimit',
    'spec.selector',
    'spec.serviceName',
    'spec.volumeClaimTemplates',
  ],
  'batch/Job': ['spec.completions', 'spec.parallelism', 'spec.selector', 'spec.template'],
  'rbac.authorization.k8s.io/ClusterRoleBinding': ['roleRef'],
  'rbac.authorization.k8s.io/RoleBinding': ['roleRef'],
  'storage.k8s.io/StorageClass': ['parameters', 'provisioner'],
  '/PersistentVolumeClaim': ['spec.accessModes', 'spec.selector', 'spec.storageClassName', 'spec.volumeName'],
  '/ResourceQuota': ['spec.scopes'],
  '/Secret': ['type'],
  '/Service': ['spec.clusterIP'],
  '/Pod': ['spec'],
};

/** What of the provider's configuration bears on replacements. */
interface Mutability {
  readonly configMaps: boolean;
  readonly secrets: boolean;
}

/** Fields that cannot change in place. */
export function forceNewPaths(
  group: string,
  kind: string,
  mutability: Mutability,
  immutable: boolean,
): readonly string[] {
  const paths = ['metadata.name', 'metadata.namespace'];
  if (group === '' && kind === 'Secret' && (!mutability.secrets || immutable))
    return [...paths, 'type', 'stringData', 'data'];
  if (group === '' && kind === 'ConfigMap' && (!mutability.configMaps || immutable))
    return [...paths, 'binaryData', 'data'];
  return [...paths, ...(forceNew[`${group}/${kind}`] ?? [])];
}

/**
 * Paths at which the new inputs differ from what the live object had of the old inputs: fields that only the server set do not count,
 * those that a program no longer sets do.
 */
export function changedPaths(oldInputs: Value, live: Value, inputs: Value, ignored: readonly string[]): string[] {
  const found: string[] = [];
  compare('', pruned(unwrap(live), unwrap(oldInputs)), unwrap(inputs), found);
  return ignored.length === 0 ? found : found.filter((path) => !covers(ignored, path));
}

/** Whether a changed path is one of those, lies below one, or holds one. */
export function pathsOverlap(changed: string, paths: readonly string[]): boolean {
  return paths.some((path) => covers([path], changed) || covers([changed], path));
}

/** Live values in the shape of the inputs; where the live object lost one, it is missing. */
function pruned(live: Value | undefined, inputs: Value): Value | undefined {
  const [now, then] = [live === undefined ? undefined : unwrap(live), unwrap(inputs)];
  if (now === undefined) return undefined;
  if (isMap(then) && isMap(now)) {
    return Object.fromEntries(
      Object.entries(then).flatMap(([key, item]) => {
        const kept = pruned(now[key], item);
        return kept === undefined ? [] : [[key, kept]];
      }),
    );
  }
  if (Array.isArray(then) && Array.isArray(now)) {
    return now.map((item, at) => (then[at] === undefined ? item : (pruned(item, then[at]) ?? null)));
  }
  return now;
}

function compare(path: string, before: Value | undefined, after: Value | undefined, found: string[]): void {
  const [old, now] = [before, after].map((value) => (value instanceof Secret ? unwrap(value) : value));
  if (isMap(old) && isMap(now)) {
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)]))
      compare(step(path, key), old[key], now[key], found);
  } else if (Array.isArray(old) && Array.isArray(now)) {
    for (let at = 0; at < Math.max(old.length, now.length); at++) compare(`${path}[${at}]`, old[at], now[at], found);
  } else if (now instanceof Unknown || !(old === now || bothEmpty(old, now))) {
    found.push(path);
  }
}

/** The server drops empty fields; an input that is empty and a live field that is absent are the same. */
function bothEmpty(old: Value | undefined, now: Value | undefined): boolean {
  const empty = (value: Value | undefined): boolean =>
    value === undefined ||
    value === null ||
    (Array.isArray(value) && value.length === 0) ||
    (isMap(value) && Object.keys(value).length === 0);
  return empty(old) && empty(now);
}

function step(path: string, key: string): string {
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}["${key.replace(/["\\]/g, '\\$&')}"]`;
  return path === '' ? key : `${path}.${key}`;
}

/**
 * What a changed configuration of a provider means (provider/pkg/provider, `DiffConfig`): the cluster of another context or kubeconfig
 * replaces the provider, and with it every object; so does another `clusterIdentifier`. The same identifier lets nothing replace it. One that
 * comes or goes decides nothing: the clusters are compared then, if both kubeconfigs lead to one.
 *
 * @throws Error for a kubeconfig that is none, the old one too
 */
export function diffConfig(before: Values, after: Values): Diff {
  const changed = changedKeys(before, after);
  if (changed.length === 0) return { changed, replace: [] };
  const identifiers = [before.clusterIdentifier, after.clusterIdentifier];
  const known = identifiers.every((value) => value !== undefined);
  const same = known && equal(...(identifiers as [Value, Value]));
  const replace = known && !same ? ['clusterIdentifier'] : [];
  const target = ['kubeconfig', 'context', 'cluster'];
  const unknown = target.find((key) => after[key] instanceof Unknown || openOf(after, key) instanceof Unknown);
  if (unknown !== undefined) return { changed: [unknown], replace: same ? [] : [...replace, unknown] };
  const [old, now] = [activeCluster(before), activeCluster(after)];
  const moved = old !== undefined && now !== undefined && !isDeepStrictEqual(old, now);
  if (moved) replace.push(...target.filter((key) => changed.includes(key)));
  return { changed, replace: same ? [] : replace };
}

/** A kubeconfig, as far as it is looked at. */
interface Config {
  readonly 'current-context'?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: { readonly cluster: string } }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster: unknown }[];
}

/** The settings of the cluster that is meant; undefined where none can be found, such as without a kubeconfig (`getActiveClusterFromConfig`). */
function activeCluster(inputs: Values): unknown {
  const config = configOf(openOf(inputs, 'kubeconfig'));
  const context = textOf(inputs, 'context') ?? config['current-context'] ?? '';
  const active = config.contexts?.find(({ name }) => name === context);
  const cluster = textOf(inputs, 'cluster') ?? active?.context.cluster;
  return active === undefined ? undefined : config.clusters?.find(({ name }) => name === cluster)?.cluster;
}

/** A path, or the text itself (`parseKubeconfigString`). */
function configOf(value: Value | undefined): Config {
  if (value === undefined || value === null || value === '') return {};
  const given: Plain = plain(value);
  if (typeof given !== 'string') return given as Config;
  const path = given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : given;
  const isFile = path.length < 4096 && !path.includes('\n') && existsSync(path);
  const config = load(isFile ? readFileSync(path, 'utf8') : given);
  if (config === undefined || config === null) return {};
  if (typeof config === 'object') return config;
  throw new Error(`failed to parse kubeconfig: "${given}" is no file, and no kubeconfig`);
}

/** An empty text is one: it names a context that there is not. */
function textOf(inputs: Values, key: string): string | undefined {
  const value = openOf(inputs, key);
  return typeof value === 'string' ? value : undefined;
}

function openOf(inputs: Values, key: string): Value | undefined {
  const value = inputs[key];
  return value === undefined || isMap(value) ? value : unwrap(value);
}
