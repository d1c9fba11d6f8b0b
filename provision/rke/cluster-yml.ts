import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { isObject } from '../../constructs/kube/kube-object';
import type { Node, RkeInput, RkeOptions } from '../cluster/cluster-input';
import type { ValueSource } from '../task/task';
import { Lookup, redactLookups, yamlSource, type YamlValue, type YamlObject } from './yaml';

/** Time that a Job of an add-on may take, in seconds. RKE's own 45 are too few where images are yet to be pulled. */
const ADDON_JOB_TIMEOUT_SECONDS = 180;

/**
 * The `cluster.yml` of RKE 1.x for a typed input, with the secrets in it as lookups. The input must have no problems.
 *
 * Source: `RancherKubernetesEngineConfig` of RKE 1.6 (types/rke_types.go).
 */
export function clusterYml({ name, version, nodes, options }: RkeInput): YamlObject {
  const { tlsSans, ingressProvider, dnsProvider, metricsProvider } = options;
  return {
    cluster_name: name,
    kubernetes_version: version,
    nodes: nodes.map(nodeYml),
    bastion_host: bastionYml(nodes),
    ssh_agent_auth: false,
    services: servicesYml(options),
    network: options.network && {
      plugin: options.network.plugin,
      mtu: options.network.mtu,
    },
    authentication: tlsSans && { strategy: 'x509', sans: tlsSans },
    authorization: { mode: options.authorization },
    ingress: ingressProvider && { provider: ingressProvider },
    dns: dnsProvider && { provider: dnsProvider },
    monitoring: metricsProvider && { provider: metricsProvider },
    ignore_docker_version: options.ignoreDockerVersion,
    enable_cri_dockerd: options.enableCriDockerd,
    private_registries: options.privateRegistries?.map(registryYml),
    upgrade_strategy: options.upgradeStrategy && upgradeStrategyYml(options.upgradeStrategy),
    addon_job_timeout: ADDON_JOB_TIMEOUT_SECONDS,
  };
}

/** {@link clusterYml} as the text that RKE reads, its secrets to be looked up. */
export function clusterYmlSource(input: RkeInput): ValueSource {
  return yamlSource(clusterYml(input));
}

/** {@link clusterYml} as people may read it: without its secrets. */
export function redactedClusterYml(input: RkeInput): string {
  return `${JSON.stringify(redactLookups(clusterYml(input)), null, 2)}\n`;
}

function nodeYml(node: Node): YamlObject {
  return {
    address: node.address,
    port: String(node.port),
    internal_address: node.internalAddress,
    user: node.user,
    role: node.roles,
    hostname_override: node.hostnameOverride,
    ssh_key_path: CLUSTER_KEY_PATH,
    labels: node.labels,
    taints: node.taints?.map(({ key, value, effect }) => ({ key, value: value ?? '', effect })),
  };
}

/** RKE has one bastion for all nodes. That they agree is checked before. */
function bastionYml(nodes: readonly Node[]): YamlObject | undefined {
  const bastion = nodes[0]?.bastion;
  return (
    bastion && {
      address: bastion.address,
      port: String(bastion.port),
      user: bastion.user,
      ssh_key_path: bastion.sshKeySecretRef === undefined ? CLUSTER_KEY_PATH : BASTION_KEY_PATH,
      // Without it RKE would go to its bastion by whatever proxy the environment names.
      ignore_proxy_env_vars: true,
    }
  );
}

type Registry = NonNullable<RkeInput['options']['privateRegistries']>[number];

function registryYml({ url, credentialsSecretRef: secret, isDefault }: Registry): YamlObject {
  return {
    url,
    user: secret && secretLookup({ ...secret, key: 'username' }),
    password: secret && secretLookup({ ...secret, key: 'password' }),
    is_default: isDefault,
  };
}

function secretLookup(secret: ObjectKeyRef): YamlValue {
  return new Lookup({ secret });
}

type Services = NonNullable<RkeOptions['services']>;
type Snapshots = NonNullable<NonNullable<Services['etcd']>['snapshots']>;
type Strategy = NonNullable<RkeOptions['upgradeStrategy']>;

/** The field `services`. A service that nothing is said about is left out, so that RKE's own defaults hold. */
function servicesYml({
  services = {},
  clusterCidr,
  serviceCidr,
  clusterDns,
  clusterDomain,
}: RkeOptions): YamlObject | undefined {
  const { etcd, kubeApi, kubeController, scheduler, kubelet, kubeproxy } = services;
  return unlessEmpty({
    etcd: unlessEmpty({
      extra_args: etcd?.extraArgs,
      backup_config: etcd?.snapshots && snapshotsYml(etcd.snapshots),
    }),
    'kube-api': unlessEmpty({
      extra_args: kubeApi?.extraArgs,
      service_cluster_ip_range: serviceCidr,
      service_node_port_range: kubeApi?.serviceNodePortRange,
      always_pull_images: kubeApi?.alwaysPullImages,
      secrets_encryption_config: toggle(kubeApi?.secretsEncryption),
      audit_log: toggle(kubeApi?.auditLog),
    }),
    'kube-controller': unlessEmpty({
      extra_args: kubeController?.extraArgs,
      cluster_cidr: clusterCidr,
      service_cluster_ip_range: serviceCidr,
    }),
    scheduler: unlessEmpty({ extra_args: scheduler?.extraArgs }),
    kubelet: unlessEmpty({
      extra_args: kubelet?.extraArgs,
      cluster_domain: clusterDomain,
      cluster_dns_server: clusterDns,
      fail_swap_on: kubelet?.failSwapOn,
      generate_serving_certificate: kubelet?.generateServingCertificate,
    }),
    kubeproxy: unlessEmpty({ extra_args: kubeproxy?.extraArgs }),
  });
}

/**
 * The field `upgrade_strategy`. The inputs of a drain are given all or none: RKE fills in defaults only while `drain` is off, and of inputs
 * given in part it forgets some. Source: setNodeUpgradeStrategy and parseNodeDrainInput of RKE 1.6 (cluster/defaults.go, cluster/cluster.go).
 */
function upgradeStrategyYml({ controlPlaneConcurrency, workerConcurrency, drain }: Strategy): YamlObject {
  return {
    max_unavailable_controlplane: String(controlPlaneConcurrency),
    max_unavailable_worker: String(workerConcurrency),
    drain: drain?.enabled ?? false,
    node_drain_input: drain && {
      force: drain.force,
      ignore_daemonsets: drain.ignoreDaemonSets,
      delete_local_data: drain.deleteEmptyDirData,
      grace_period: drain.gracePeriodSeconds,
      timeout: drain.timeoutSeconds,
    },
  };
}

function snapshotsYml({ enabled, intervalHours, retention, s3 }: Snapshots): YamlObject {
  const { credentialsSecretRef: credentials, caSecretRef: ca } = s3 ?? {};
  return {
    enabled,
    interval_hours: intervalHours,
    retention,
    // The field has no name of its own in RKE's type, so it goes by the Go field's name in lower case.
    s3backupconfig: s3 && {
      endpoint: s3.endpoint,
      region: s3.region,
      bucket_name: s3.bucket,
      folder: s3.folder,
      access_key: credentials && new Lookup({ secret: { ...credentials, key: 'accessKey' } }),
      secret_key: credentials && new Lookup({ secret: { ...credentials, key: 'secretKey' } }),
      custom_ca: ca && new Lookup({ secret: ca }),
    },
  };
}

const toggle = (enabled: boolean | undefined): YamlObject | undefined =>
  enabled === undefined ? undefined : { enabled };

function unlessEmpty(fields: YamlObject): YamlObject | undefined {
  return Object.values(fields).some((field) => field !== undefined) ? fields : undefined;
}

/**
 * Where things lie in the folder that a script makes for one run of RKE. RKE is started in {@link WORK_DIR}, and paths in cluster.yml are
 * relative to that: they stand in RKE's state, from which a later run takes the keys of nodes that are to be removed, so they must be the same in
 * each run, which the folder's own name is not.
 */

/** RKE's working directory, below the run's folder. It holds the files that cluster.yml names. */
export const WORK_DIR = 'work';

/** The cluster's SSH key. No path of a user's has a hidden part, so it collides with none. */
export const CLUSTER_KEY_PATH = '.kindred/cluster-key';

/** The bastion's SSH key. */
export const BASTION_KEY_PATH = '.kindred/bastion-key';

/** A configuration with the one key for everything in place of those that it names, or as it is. */
export function withClusterKeyPath(config: YamlObject, sshKey: boolean): YamlObject {
  if (!sshKey) return config;
  const { nodes, bastion_host: bastion } = config;
  return {
    ...withoutSshKeys(config),
    ssh_key_path: CLUSTER_KEY_PATH,
    ...(Array.isArray(nodes) ? { nodes: (nodes as readonly YamlValue[]).map(withoutSshKeys) } : {}),
    ...(isObject(bastion) ? { bastion_host: withoutSshKeys(bastion) } : {}),
  };
}

function withoutSshKeys<T extends YamlValue>(entry: T): T {
  if (!isObject(entry)) return entry;
  return Object.fromEntries(
    Object.entries(entry).filter(
      ([name]) => name !== 'ssh_key_path' && name !== 'ssh_cert_path' && name !== 'ssh_cert',
    ),
  ) as unknown as T;
}
