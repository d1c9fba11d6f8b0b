import type { ObjectKeyRef } from '../../kind/reads';
import type { Node, RkeInput } from '../cluster-input';
import type { Source } from '../task';
import { upgradeStrategyYml, servicesYml } from './cluster-yml-services';
import { BASTION_KEY_PATH, CLUSTER_KEY_PATH } from './layout';
import { Lookup, withoutLookups, yamlSource, type Document, type DocumentObject } from './yaml-text';

/** Time that a Job of an add-on may take, in seconds. RKE's own 45 are too few where images are yet to be pulled. */
const ADDON_JOB_TIMEOUT_SECONDS = 180;

/**
 * The `cluster.yml` of RKE 1.x for a typed input, with the secrets in it as lookups. The input must have no problems.
 *
 * Source: `RancherKubernetesEngineConfig` of RKE 1.6 (types/rke_types.go).
 */
export function clusterYml({ name, version, nodes, options }: RkeInput): DocumentObject {
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
export function clusterYmlSource(input: RkeInput): Source {
  return yamlSource(clusterYml(input));
}

/** {@link clusterYml} as people may read it: without its secrets. */
export function redactedClusterYml(input: RkeInput): string {
  return `${JSON.stringify(withoutLookups(clusterYml(input)), null, 2)}\n`;
}

function nodeYml(node: Node): DocumentObject {
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
function bastionYml(nodes: readonly Node[]): DocumentObject | undefined {
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

function registryYml({ url, credentialsSecretRef: secret, isDefault }: Registry): DocumentObject {
  return {
    url,
    user: secret && value({ ...secret, key: 'username' }),
    password: secret && value({ ...secret, key: 'password' }),
    is_default: isDefault,
  };
}

function value(secret: ObjectKeyRef): Document {
  return new Lookup({ secret });
}
