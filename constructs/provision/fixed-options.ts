import type { ClusterInput } from './cluster-input';

/** Options that a cluster has for life, by distribution, as paths below them. */
const FIXED = {
  rke: ['clusterCidr', 'serviceCidr', 'clusterDomain', 'network.plugin'],
  rke2: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'cni'],
  k3s: ['clusterCidrs', 'serviceCidrs', 'clusterDomain', 'dataDir', 'flannelBackend', 'datastore.type'],
} as const;

/** Values of some of them that are the same as none. */
const DEFAULTS: Readonly<Record<string, string>> = {
  clusterDomain: 'cluster.local',
  clusterCidr: '10.42.0.0/16',
  serviceCidr: '10.43.0.0/16',
  clusterCidrs: '10.42.0.0/16',
  serviceCidrs: '10.43.0.0/16',
  'network.plugin': 'canal',
  'datastore.type': 'etcd',
};

/** The options that cannot change once a cluster stands, by path below the distribution's; lists in one text, `''` = not set. */
export function fixedOptions({ distribution, options }: ClusterInput): ReadonlyMap<string, string> {
  return new Map(FIXED[distribution].map((path) => [path, valueAt(options, path)]));
}

function valueAt(options: ClusterInput['options'], path: string): string {
  const value = path
    .split('.')
    .reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null ? (at as Readonly<Record<string, unknown>>)[key] : undefined),
      options,
    );
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : (DEFAULTS[path] ?? '');
}
