/** What a field of a user's cluster.yml may hold. A field that has no rule is refused. */
export type Rule =
  /** A string; RKE's parser also takes a number or a boolean for one. */
  | { readonly text: true; readonly secret?: SecretKind }
  | { readonly number: true }
  | { readonly boolean: true }
  | { readonly list: Rule }
  /** Any keys. */
  | { readonly map: Rule }
  | { readonly fields: Fields }
  /** Any JSON that goes to the cluster as it is: RKE looks for nothing in it. */
  | { readonly json: true; readonly secret?: SecretKind }
  /** A path of a file that RKE reads on its own host. */
  | { readonly file: FilePurpose }
  /** A field that RKE knows and that is not taken. A value that means nothing (false, or an empty one) is dropped. */
  | { readonly refused: string };

/** Rules by name of the field. */
export interface Fields {
  readonly [name: string]: Rule;
}

/** What RKE reads a file for. */
export type FilePurpose = 'sshKey' | 'sshCertificate' | 'addon';

/**
 * `sshKey` is a private SSH key, which must move to a Secret of its own; `inline` is any other secret, which stays where it is and is hidden
 * wherever people read.
 */
export type SecretKind = 'sshKey' | 'inline';

const text: Rule = { text: true };
const number: Rule = { number: true };
const boolean: Rule = { boolean: true };
const json: Rule = { json: true };
const secretText: Rule = { text: true, secret: 'inline' };
const secretJson: Rule = { json: true, secret: 'inline' };
const texts: Rule = { list: text };
const textMap: Rule = { map: text };

/** A list of that. */
const listOf = (list: Rule): Rule => ({ list });
/** An object with these fields and no others. */
const object = (fields: Fields): Rule => ({ fields });
/** The named fields, all by one rule. */
const all = (rule: Rule, ...names: readonly string[]): Fields => Object.fromEntries(names.map((name) => [name, rule]));

/** What every component has. The paths of `extra_binds` are those of the nodes. */
const component: Fields = {
  image: text,
  ...all(textMap, 'extra_args', 'win_extra_args'),
  ...all({ map: texts }, 'extra_args_array', 'win_extra_args_array'),
  ...all(texts, 'extra_binds', 'win_extra_binds'),
  // Environment of a component, where a proxy's password may stand.
  ...all({ list: secretText }, 'extra_env', 'win_extra_env'),
};

const backup: Fields = {
  ...all(boolean, 'enabled', 'safe_timestamp'),
  ...all(number, 'interval_hours', 'retention', 'timeout'),
  s3backupconfig: object({
    ...all(text, 'access_key', 'bucket_name', 'region', 'endpoint', 'custom_ca', 'folder'),
    secret_key: secretText,
  }),
};

const auditLog: Fields = {
  enabled: boolean,
  configuration: object({
    ...all(number, 'max_age', 'max_backup', 'max_size'),
    ...all(text, 'path', 'format'),
    policy: json,
  }),
};

/** The field `services`. Source: `RKEConfigServices` of RKE 1.6 (types/rke_types.go). */
const serviceRules: Fields = {
  etcd: object({
    ...component,
    external_urls: texts,
    ...all(text, 'ca_cert', 'cert', 'path', 'retention', 'creation'),
    key: secretText,
    ...all(number, 'uid', 'gid'),
    snapshot: boolean,
    backup_config: object(backup),
  }),
  'kube-api': object({
    ...component,
    ...all(text, 'service_cluster_ip_range', 'service_node_port_range', 'pod_security_configuration'),
    always_pull_images: boolean,
    secrets_encryption_config: object({ enabled: boolean, custom_config: secretJson }),
    audit_log: object(auditLog),
    admission_configuration: json,
    event_rate_limit: object({ enabled: boolean, configuration: json }),
  }),
  'kube-controller': object({ ...component, ...all(text, 'cluster_cidr', 'service_cluster_ip_range') }),
  scheduler: object(component),
  kubelet: object({
    ...component,
    ...all(text, 'cluster_domain', 'infra_container_image', 'cluster_dns_server'),
    ...all(boolean, 'fail_swap_on', 'generate_serving_certificate'),
  }),
  kubeproxy: object(component),
};

const sshAgentAuth: Rule = {
  refused: 'is not taken: the SSH agent would be that of the machine that RKE runs on; use sshKeySecretRef',
};

/** How a machine is logged in to: the same fields for a node and the bastion. */
const login: Fields = {
  ...all(text, 'address', 'port', 'user'),
  ssh_key: { text: true, secret: 'sshKey' },
  ssh_key_path: { file: 'sshKey' },
  ssh_cert: text,
  ssh_cert_path: { file: 'sshCertificate' },
  ssh_agent_auth: sshAgentAuth,
};

const once = (command: string): Rule => ({
  refused: `is not taken: it is something to do once, and would be done again by every run; use ${command} by hand`,
});

/** A Deployment or a DaemonSet that RKE brings along. */
const addOn: Fields = {
  provider: text,
  options: textMap,
  node_selector: textMap,
  update_strategy: json,
  tolerations: json,
};

/** Every image that RKE knows. Source: RKESystemImages of RKE 1.6. */
const systemImages: Fields = all(
  text,
  ...['etcd', 'alpine', 'nginx_proxy', 'cert_downloader', 'kubernetes_services_sidecar', 'kubernetes'],
  ...['kubedns', 'dnsmasq', 'kubedns_sidecar', 'kubedns_autoscaler', 'coredns', 'coredns_autoscaler', 'nodelocal'],
  ...['flannel', 'flannel_cni', 'calico_node', 'calico_cni', 'calico_controllers', 'calico_ctl', 'calico_flexvol'],
  ...['canal_node', 'canal_cni', 'canal_controllers', 'canal_flannel', 'canal_flexvol', 'weave_node', 'weave_cni'],
  ...['pod_infra_container', 'ingress', 'ingress_backend', 'ingress_webhook', 'metrics_server'],
  ...['windows_pod_infra_container', 'aci_cni_deploy_container', 'aci_host_container', 'aci_opflex_container'],
  ...['aci_mcast_container', 'aci_ovs_container', 'aci_controller_container', 'aci_gbp_server_container'],
  ...['aci_opflex_server_container'],
);

const registry: Fields = {
  ...all(text, 'url', 'user'),
  password: secretText,
  is_default: boolean,
  ecr_credential_plugin: object({
    aws_access_key_id: text,
    ...all(secretText, 'aws_secret_access_key', 'aws_session_token'),
  }),
};

/** Their files lie on the nodes; their credentials stand in them, so all of it is hidden. */
const cloudProvider: Fields = {
  name: text,
  useInstanceMetadataHostname: boolean,
  ...all(secretJson, 'awsCloudProvider', 'azureCloudProvider', 'openstackCloudProvider', 'vsphereCloudProvider'),
  ...all(secretJson, 'harvesterCloudProvider'),
  customCloudProvider: secretText,
};

const network: Fields = {
  plugin: text,
  // Where older files have Weave's password and ACI's token.
  options: { map: secretText },
  mtu: number,
  calico_network_provider: object(all(text, 'cloudprovider', 'cloud_provider')),
  ...all(object({ iface: text }), 'canal_network_provider', 'flannel_network_provider'),
  weave_network_provider: object({ password: secretText }),
  aci_network_provider: secretJson,
  node_selector: textMap,
  update_strategy: json,
  tolerations: json,
};

const ingress: Fields = {
  ...addOn,
  ...all(text, 'dns_policy', 'network_mode'),
  ...all(text, 'default_http_backend_priority_class_name', 'nginx_ingress_controller_priority_class_name'),
  ...all(number, 'http_port', 'https_port'),
  ...all(boolean, 'default_backend', 'default_ingress_class'),
  extra_args: textMap,
  ...all(json, 'extra_volumes', 'extra_volume_mounts'),
  extra_envs: secretJson,
};

const dns: Fields = {
  ...addOn,
  ...all(texts, 'upstreamnameservers', 'reversecidrs'),
  stubdomains: { map: texts },
  nodelocal: object({
    ...all(text, 'ip_address', 'node_local_dns_priority_class_name'),
    node_selector: textMap,
    update_strategy: json,
  }),
  linear_autoscaler_params: object({
    ...all(number, 'cores_per_replica', 'nodes_per_replica', 'min', 'max'),
    prevent_single_point_failure: boolean,
  }),
};

const node: Fields = {
  ...login,
  ...all(text, 'nodeName', 'internal_address', 'hostname_override', 'docker_socket'),
  role: texts,
  labels: textMap,
  taints: listOf(object(all(text, 'key', 'value', 'effect'))),
};

const upgradeStrategy: Fields = {
  ...all(text, 'max_unavailable_worker', 'max_unavailable_controlplane'),
  drain: boolean,
  node_drain_input: object({
    ...all(boolean, 'force', 'ignore_daemonsets', 'delete_local_data'),
    ...all(number, 'grace_period', 'timeout'),
  }),
};

/**
 * The fields of cluster.yml that are taken: those of `RancherKubernetesEngineConfig` in RKE 1.6 (types/rke_types.go). What RKE reads on its own
 * host is only what has the rule `file`: found by searching its source for whatever opens a file.
 */
export const clusterRules: Fields = {
  nodes: listOf(object(node)),
  bastion_host: object({ ...login, ignore_proxy_env_vars: boolean }),
  services: object(serviceRules),
  network: object(network),
  authentication: object({
    strategy: text,
    sans: texts,
    // Despite its name it is the file's content, written to the nodes.
    webhook: object({ config_file: secretText, cache_timeout: text }),
  }),
  authorization: object({ mode: text, options: textMap }),
  addons: secretText,
  addons_include: listOf({ file: 'addon' }),
  system_images: object(systemImages),
  ssh_key_path: { file: 'sshKey' },
  ssh_cert_path: { file: 'sshCertificate' },
  ssh_agent_auth: sshAgentAuth,
  ...all(boolean, 'ignore_docker_version', 'enable_cri_dockerd'),
  ...all(text, 'kubernetes_version', 'cluster_name', 'prefix_path', 'win_prefix_path'),
  ...all(text, 'cri_dockerd_stream_server_address', 'cri_dockerd_stream_server_port'),
  private_registries: listOf(object(registry)),
  ingress: object(ingress),
  cloud_provider: object(cloudProvider),
  addon_job_timeout: number,
  monitoring: object({ ...addOn, replicas: number, metrics_server_priority_class_name: text }),
  dns: object(dns),
  upgrade_strategy: object(upgradeStrategy),
  restore: object({
    restore: once('rke etcd snapshot-restore'),
    snapshot_name: { refused: 'is not taken: it goes with restore' },
  }),
  rotate_certificates: once('rke cert rotate'),
  rotate_encryption_key: once('rke encrypt rotate-key'),
};
