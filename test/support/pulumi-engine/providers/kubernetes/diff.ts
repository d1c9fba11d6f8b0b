import { covers } from '../../property-path';
import { type Value, Secret, Unknown, isMap, unwrap } from '../../values';

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
export interface Mutability {
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
export function touches(changed: string, paths: readonly string[]): boolean {
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
  } else if (now instanceof Unknown || !(old === now || nothing(old, now))) {
    found.push(path);
  }
}

/** The server drops empty fields; an input that is empty and a live field that is absent are the same. */
function nothing(old: Value | undefined, now: Value | undefined): boolean {
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
