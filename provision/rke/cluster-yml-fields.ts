/** What a field of a user's cluster.yml may contain. A field without a rule is rejected. */
export type FieldRule =
  /** A string; RKE's parser also accepts a number or a boolean as one. */
  | { readonly text: true; readonly secret?: SecretKind }
  | { readonly number: true }
  | { readonly boolean: true }
  | { readonly list: FieldRule }
  /** Any keys. */
  | { readonly map: FieldRule }
  | { readonly fields: FieldRules }
  /** Any JSON that RKE passes to the cluster without reading it. */
  | { readonly json: true; readonly secret?: SecretKind }
  /** The path of a file that RKE reads on its own host. */
  | { readonly file: FilePurpose }
  /** A field of RKE that is rejected for this reason. A value without effect (false or empty) is dropped. */
  | { readonly refused: string };

/** Rules by field name. */
export interface FieldRules {
  readonly [name: string]: FieldRule;
}

/** What RKE reads a file for. */
export type FilePurpose = 'sshKey' | 'sshCertificate' | 'addon';

/**
 * `sshKey` is a private SSH key, which must move to a Secret; `inline` is any other secret, which stays in
 * the file and is redacted wherever people read it.
 */
export type SecretKind = 'sshKey' | 'inline';

const text: FieldRule = { text: true };
const number: FieldRule = { number: true };
const boolean: FieldRule = { boolean: true };
const json: FieldRule = { json: true };
const secretText: FieldRule = { text: true, secret: 'inline' };
const secretJson: FieldRule = { json: true, secret: 'inline' };
const texts: FieldRule = { list: text };
const textMap: FieldRule = { map: text };

/** A list of items with one rule. */
const listOf = (list: FieldRule): FieldRule => ({ list });
/** An object with these fields and no others. */
const object = (fields: FieldRules): FieldRule => ({ fields });
/** The named fields, all with one rule. */
const sameRule = (rule: FieldRule, ...names: readonly string[]): FieldRules =>
  Object.fromEntries(names.map((name) => [name, rule]));

/** Fields of every component. The paths in `extra_binds` are on the nodes. */
const component: FieldRules = {
  image: text,
  ...sameRule(textMap, 'extra_args', 'win_extra_args'),
  ...sameRule({ map: texts }, 'extra_args_array', 'win_extra_args_array'),
  ...sameRule(texts, 'extra_binds', 'win_extra_binds'),
  // Environment variables, which may contain the password of a proxy.
  ...sameRule({ list: secretText }, 'extra_env', 'win_extra_env'),
};

const backup: FieldRules = {
  ...sameRule(boolean, 'enabled', 'safe_timestamp'),
  ...sameRule(number, 'interval_hours', 'retention', 'timeout'),
  s3backupconfig: object({
    ...sameRule(text, 'access_key', 'bucket_name', 'region', 'endpoint', 'custom_ca', 'folder'),
    secret_key: secretText,
  }),
};

const auditLog: FieldRules = {
  enabled: boolean,
  configuration: object({
    ...sameRule(number, 'max_age', 'max_backup', 'max_size'),
    ...sameRule(text, 'path', 'format'),
    policy: json,
  }),
};

/** The field `services`. Source: `RKEConfigServices` of RKE 1.6 (types/rke_types.go). */
const serviceRules: FieldRules = {
  etcd: object({
    ...component,
    external_urls: texts,
    ...sameRule(text, 'ca_cert', 'cert', 'path', 'retention', 'creation'),
    key: secretText,
    ...sameRule(number, 'uid', 'gid'),
    snapshot: boolean,
    backup_config: object(backup),
  }),
  'kube-api': object({
    ...component,
    ...sameRule(text, 'service_cluster_ip_range', 'service_node_port_range', 'pod_security_configuration'),
    always_pull_images: boolean,
    secrets_encryption_config: object({ enabled: boolean, custom_config: secretJson }),
    audit_log: object(auditLog),
    admission_configuration: json,
    event_rate_limit: object({ enabled: boolean, configuration: json }),
  }),
  'kube-controller': object({ ...component, ...sameRule(text, 'cluster_cidr', 'service_cluster_ip_range') }),
  scheduler: object(component),
  kubelet: object({
    ...component,
    ...sameRule(text, 'cluster_domain', 'infra_container_image', 'cluster_dns_server'),
    ...sameRule(boolean, 'fail_swap_on', 'generate_serving_certificate'),
  }),
  kubeproxy: object(component),
};

const sshAgentAuth: FieldRule = {
  refused: 'is not taken: the SSH agent would be that of the machine that RKE runs on; use sshKeySecretRef',
};

/** Login fields, the same for a node and the bastion. */
const login: FieldRules = {
  ...sameRule(text, 'address', 'port', 'user'),
  ssh_key: { text: true, secret: 'sshKey' },
  ssh_key_path: { file: 'sshKey' },
  ssh_cert: text,
  ssh_cert_path: { file: 'sshCertificate' },
  ssh_agent_auth: sshAgentAuth,
};

const oneTimeOperation = (command: string): FieldRule => ({
  refused: `is not taken: it is something to do once, and would be done again by every run; use ${command} by hand`,
});

/** Fields of an add-on: a Deployment or a DaemonSet that RKE installs. */
const addOn: FieldRules = {
  provider: text,
  options: textMap,
  node_selector: textMap,
  update_strategy: json,
  tolerations: json,
};

/** Every image that RKE knows. Source: RKESystemImages of RKE 1.6. */
const systemImages: FieldRules = sameRule(
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

const registry: FieldRules = {
  ...sameRule(text, 'url', 'user'),
  password: secretText,
  is_default: boolean,
  ecr_credential_plugin: object({
    aws_access_key_id: text,
    ...sameRule(secretText, 'aws_secret_access_key', 'aws_session_token'),
  }),
};

/**
 * The configuration of a provider contains its credentials, so all of it is redacted. Its files are on the
 * nodes.
 */
const cloudProvider: FieldRules = {
  name: text,
  useInstanceMetadataHostname: boolean,
  ...sameRule(secretJson, 'awsCloudProvider', 'azureCloudProvider', 'openstackCloudProvider', 'vsphereCloudProvider'),
  ...sameRule(secretJson, 'harvesterCloudProvider'),
  customCloudProvider: secretText,
};

const network: FieldRules = {
  plugin: text,
  // Older files have Weave's password and ACI's token here.
  options: { map: secretText },
  mtu: number,
  calico_network_provider: object(sameRule(text, 'cloudprovider', 'cloud_provider')),
  ...sameRule(object({ iface: text }), 'canal_network_provider', 'flannel_network_provider'),
  weave_network_provider: object({ password: secretText }),
  aci_network_provider: secretJson,
  node_selector: textMap,
  update_strategy: json,
  tolerations: json,
};

const ingress: FieldRules = {
  ...addOn,
  ...sameRule(text, 'dns_policy', 'network_mode'),
  ...sameRule(text, 'default_http_backend_priority_class_name', 'nginx_ingress_controller_priority_class_name'),
  ...sameRule(number, 'http_port', 'https_port'),
  ...sameRule(boolean, 'default_backend', 'default_ingress_class'),
  extra_args: textMap,
  ...sameRule(json, 'extra_volumes', 'extra_volume_mounts'),
  extra_envs: secretJson,
};

const dns: FieldRules = {
  ...addOn,
  ...sameRule(texts, 'upstreamnameservers', 'reversecidrs'),
  stubdomains: { map: texts },
  nodelocal: object({
    ...sameRule(text, 'ip_address', 'node_local_dns_priority_class_name'),
    node_selector: textMap,
    update_strategy: json,
  }),
  linear_autoscaler_params: object({
    ...sameRule(number, 'cores_per_replica', 'nodes_per_replica', 'min', 'max'),
    prevent_single_point_failure: boolean,
  }),
};

const node: FieldRules = {
  ...login,
  ...sameRule(text, 'nodeName', 'internal_address', 'hostname_override', 'docker_socket'),
  role: texts,
  labels: textMap,
  taints: listOf(object(sameRule(text, 'key', 'value', 'effect'))),
};

const upgradeStrategy: FieldRules = {
  ...sameRule(text, 'max_unavailable_worker', 'max_unavailable_controlplane'),
  drain: boolean,
  node_drain_input: object({
    ...sameRule(boolean, 'force', 'ignore_daemonsets', 'delete_local_data'),
    ...sameRule(number, 'grace_period', 'timeout'),
  }),
};

/**
 * The fields of cluster.yml that are accepted: those of `RancherKubernetesEngineConfig` in RKE 1.6
 * (types/rke_types.go). RKE reads files on its own host only for fields with the rule `file`, according to a
 * search of its source for all that opens a file.
 */
export const clusterYmlRules: FieldRules = {
  nodes: listOf(object(node)),
  bastion_host: object({ ...login, ignore_proxy_env_vars: boolean }),
  services: object(serviceRules),
  network: object(network),
  authentication: object({
    strategy: text,
    sans: texts,
    // Despite its name this is the content of the file, written to the nodes.
    webhook: object({ config_file: secretText, cache_timeout: text }),
  }),
  authorization: object({ mode: text, options: textMap }),
  addons: secretText,
  addons_include: listOf({ file: 'addon' }),
  system_images: object(systemImages),
  ssh_key_path: { file: 'sshKey' },
  ssh_cert_path: { file: 'sshCertificate' },
  ssh_agent_auth: sshAgentAuth,
  ...sameRule(boolean, 'ignore_docker_version', 'enable_cri_dockerd'),
  ...sameRule(text, 'kubernetes_version', 'cluster_name', 'prefix_path', 'win_prefix_path'),
  ...sameRule(text, 'cri_dockerd_stream_server_address', 'cri_dockerd_stream_server_port'),
  private_registries: listOf(object(registry)),
  ingress: object(ingress),
  cloud_provider: object(cloudProvider),
  addon_job_timeout: number,
  monitoring: object({ ...addOn, replicas: number, metrics_server_priority_class_name: text }),
  dns: object(dns),
  upgrade_strategy: object(upgradeStrategy),
  restore: object({
    restore: oneTimeOperation('rke etcd snapshot-restore'),
    snapshot_name: { refused: 'is not taken: it goes with restore' },
  }),
  rotate_certificates: oneTimeOperation('rke cert rotate'),
  rotate_encryption_key: oneTimeOperation('rke encrypt rotate-key'),
};
