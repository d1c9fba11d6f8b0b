import type { Fields } from './rules';
import { all, boolean, json, number, object, secretJson, secretText, text, textMap, texts } from './rules';

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
export const serviceRules: Fields = {
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
