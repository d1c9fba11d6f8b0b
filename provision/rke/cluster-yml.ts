import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { isObject } from '../../constructs/kube/kube-object';
import type { Node, RkeInput, RkeOptions } from '../cluster/cluster-input';
import { Lookup, type YamlValue, type YamlObject } from './yaml';

/**
 * The `cluster.yml` of RKE 1.x for a typed input, with the secrets in it as lookups. The input must have no
 * problems.
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

/** A configuration in which, if `sshKey` is set, the cluster's key replaces all keys that it names. */
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

/**
 * RKE's working directory, below the directory that a script creates for one run. It contains the files that
 * cluster.yml names.
 *
 * Paths in cluster.yml are relative to it, because they must be the same in each run, and the run's directory
 * is not: RKE stores them in its state, from which a later run takes the keys of nodes to remove.
 */
export const WORK_DIR = 'work';

/**
 * Path of the cluster's SSH key in {@link WORK_DIR}. Users' paths have no hidden part, so it collides with
 * none.
 */
export const CLUSTER_KEY_PATH = '.kindred/cluster-key';

/** Path of the bastion's SSH key in {@link WORK_DIR}. */
export const BASTION_KEY_PATH = '.kindred/bastion-key';

/** Timeout of an add-on's Job, in seconds. RKE's default of 45 is too short when images must be pulled. */
const ADDON_JOB_TIMEOUT_SECONDS = 180;

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

/** RKE has one bastion for all nodes. `rkeProblems` checks that the nodes agree. */
function bastionYml(nodes: readonly Node[]): YamlObject | undefined {
  const bastion = nodes[0]?.bastion;
  return (
    bastion && {
      address: bastion.address,
      port: String(bastion.port),
      user: bastion.user,
      ssh_key_path: bastion.sshKeySecretRef === undefined ? CLUSTER_KEY_PATH : BASTION_KEY_PATH,
      // Without it RKE would connect to the bastion through a proxy that the environment names.
      ignore_proxy_env_vars: true,
    }
  );
}

type Services = NonNullable<RkeOptions['services']>;
type Snapshots = NonNullable<NonNullable<Services['etcd']>['snapshots']>;

/** The field `services`. A service without options is left out, so that RKE's own defaults apply. */
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

function snapshotsYml({ enabled, intervalHours, retention, s3 }: Snapshots): YamlObject {
  const { credentialsSecretRef: credentials, caSecretRef: ca } = s3 ?? {};
  return {
    enabled,
    interval_hours: intervalHours,
    retention,
    // RKE's type gives this field no name, so its name is that of the Go field in lower case.
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

type Strategy = NonNullable<RkeOptions['upgradeStrategy']>;

/**
 * The field `upgrade_strategy`. The inputs of a drain are given all or none: RKE fills in defaults only while
 * `drain` is off, and drops some of the inputs if only a part is given. Source: setNodeUpgradeStrategy and
 * parseNodeDrainInput of RKE 1.6 (cluster/defaults.go, cluster/cluster.go).
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

function withoutSshKeys<T extends YamlValue>(entry: T): T {
  if (!isObject(entry)) return entry;
  return Object.fromEntries(
    Object.entries(entry).filter(
      ([name]) => name !== 'ssh_key_path' && name !== 'ssh_cert_path' && name !== 'ssh_cert',
    ),
  ) as unknown as T;
}
