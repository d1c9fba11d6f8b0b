/** The configuration of a node: `config.yaml`, the files with secrets, and its labels and taints. */

import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { datastoreType, type Node } from '../cluster/cluster-input';
import type { ValueSource, StdinValue } from '../task/task';
import { distributionInfo, type Rke2K3sInput } from './distribution';
import { internalAddress, isServer, layoutOf, urlHost } from './layout';
import { sha256 } from '../task/sha256';

/** `config.yaml`, which contains no secret: one line per key, each value as JSON, which YAML reads. */
export function renderConfig(input: Rke2K3sInput, node: Node): string {
  return toYamlLines({ ...joinConfig(input, node), ...registrationConfig(node), ...runtimeConfig(input, node) });
}

/**
 * Hash of a node's configuration. When it changes, the node's service is restarted, so the node is cordoned
 * first. The join address and the registration are left out: they matter once, and labels and taints change
 * through the API.
 */
export function nodeConfigHash(input: Rke2K3sInput, node: Node): string {
  const role = isServer(node) ? 'server' : 'agent';
  return sha256([input.distribution, input.version, role, toYamlLines(runtimeConfig(input, node))].join('\n')).slice(
    0,
    16,
  );
}

/** A file with secrets that the installation of a node writes. */
interface SecretFile {
  /** Path on the machine. */
  readonly path: string;
  readonly value: StdinValue;
}

/** The files with secrets of a node. Each text is one value on stdin. */
export function secretFiles(input: Rke2K3sInput, node: Node): readonly SecretFile[] {
  const { configFolder } = distributionInfo(input);
  const { registries = [], etcdSnapshots } = input.options;
  const file = (path: string, name: string, from: ValueSource): SecretFile => ({ path, value: { name, from } });
  const files = [file(`${configFolder}/config.yaml.d/50-kindred.yaml`, 'secret_config', secretConfig(input, node))];
  const s3Ca = etcdSnapshots?.s3?.caSecretRef;
  if (isServer(node) && s3Ca !== undefined) files.push(file(s3CaFile(configFolder), 's3_ca', { secret: s3Ca }));
  const template = registriesTemplate(input);
  if (template.length > 0) files.push(file(`${configFolder}/registries.yaml`, 'registries', { template }));
  registries.forEach(({ caSecretRef }, i) => {
    if (caSecretRef === undefined) return;
    files.push(file(registryCaFile(configFolder, i), `registry_ca_${i}`, { secret: caSecretRef }));
  });
  return files;
}

/** The join token, which the first server creates. */
export function joinTokenValue(input: Rke2K3sInput): StdinValue {
  return { name: 'token', from: { output: { task: `${layoutOf(input).first.address}/token`, name: 'token' } } };
}

/** Prefix of our labels and annotations. */
const LABEL_PREFIX = 'kindred.dev/';

/** Label that identifies a node, whatever its name is. */
export const NODE_LABEL = `${LABEL_PREFIX}node`;

/** The value of {@link NODE_LABEL}: the address, or its hash if it is no valid label value. */
export function nodeLabelValue({ address }: Node): string {
  return address.length <= 63 && !address.includes(':') ? address : sha256(address).slice(0, 32);
}

/** Labels of a node in the cluster, as `key=value`. */
export function nodeLabels(node: Node): readonly string[] {
  return Object.entries({ ...node.labels, [NODE_LABEL]: nodeLabelValue(node) })
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

/**
 * Taints of a node, as `key=value:effect`. Servers that are not workers get taints that the components of
 * RKE2 and K3s tolerate.
 */
export function nodeTaints({ roles, taints = [] }: Node): readonly string[] {
  const dedicated = roles.includes('worker')
    ? []
    : [
        ...(roles.includes('controlplane') ? ['node-role.kubernetes.io/control-plane:NoSchedule'] : []),
        ...(roles.includes('etcd') ? ['node-role.kubernetes.io/etcd:NoExecute'] : []),
      ];
  const given = taints.map(({ key, value = '', effect }) => `${key}${value === '' ? '' : `=${value}`}:${effect}`);
  return [...new Set([...dedicated, ...given])].sort();
}

type Value = string | boolean | number | readonly string[];
type Config = Readonly<Record<string, Value | undefined>>;

function toYamlLines(config: Config): string {
  return Object.entries(config)
    .filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0))
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
    .join('');
}

function joinConfig(input: Rke2K3sInput, node: Node): Config {
  const { first, registration } = layoutOf(input);
  if (node !== first) return { server: `https://${urlHost(registration)}:${distributionInfo(input).registrationPort}` };
  return input.distribution === 'k3s' && datastoreType(input) === 'etcd' ? { 'cluster-init': true } : {};
}

/**
 * A kubelet may not set most labels of these domains on itself; they are set through the API. Source:
 * NodeRestriction.
 */
const RESTRICTED_LABEL = /^([^/=]+[.])?(kubernetes|k8s)[.]io[/]/;

const registrationConfig = (node: Node): Config => ({
  'node-name': node.hostnameOverride,
  'node-label': nodeLabels(node).filter((label) => !RESTRICTED_LABEL.test(label)),
  'node-taint': nodeTaints(node),
});

function runtimeConfig(input: Rke2K3sInput, node: Node): Config {
  const common: Config = { ...addressConfig(node), ...commonConfig(input) };
  return isServer(node)
    ? { ...common, ...serverConfig(input), ...tlsSanConfig(input, node), ...disabledComponents(input, node) }
    : common;
}

const isIp = (host: string): boolean => host.includes(':') || /^[0-9.]+$/.test(host);

function addressConfig(node: Node): Config {
  if (node.internalAddress === undefined) return { 'node-ip': isIp(node.address) ? node.address : undefined };
  const external = isIp(node.address) && node.address !== node.internalAddress ? node.address : undefined;
  return { 'node-ip': node.internalAddress, 'node-external-ip': external };
}

function commonConfig(input: Rke2K3sInput): Config {
  const { options } = input;
  return {
    'data-dir': options.dataDir,
    'kubelet-arg': args(options.extraArgs?.kubelet),
    'kube-proxy-arg': args(options.extraArgs?.kubeProxy),
    'protect-kernel-defaults': options.protectKernelDefaults,
    selinux: options.selinux,
    ...(input.distribution === 'rke2'
      ? { profile: input.options.profile, 'system-default-registry': options.systemDefaultRegistry }
      : {}),
  };
}

function serverConfig(input: Rke2K3sInput): Config {
  const { options } = input;
  return {
    'write-kubeconfig-mode': '0600',
    'cluster-cidr': options.clusterCidrs?.join(','),
    'service-cidr': options.serviceCidrs?.join(','),
    'cluster-dns': options.clusterDns?.join(','),
    'cluster-domain': options.clusterDomain,
    'service-node-port-range': options.serviceNodePortRange,
    'kube-apiserver-arg': args(options.extraArgs?.kubeApiserver),
    'kube-controller-manager-arg': args(options.extraArgs?.kubeControllerManager),
    'kube-scheduler-arg': args(options.extraArgs?.kubeScheduler),
    'etcd-arg': args(options.extraArgs?.etcd),
    ...snapshotConfig(options.etcdSnapshots, distributionInfo(input).configFolder),
    disable: options.disable,
    'disable-kube-proxy': options.disableKubeProxy,
    'disable-cloud-controller': options.disableCloudController,
    ...(input.distribution === 'rke2' ? rke2Config(input.options) : k3sConfig(input.options)),
  };
}

function rke2Config({
  cni,
  multus,
  ingressController,
}: Extract<Rke2K3sInput, { distribution: 'rke2' }>['options']): Config {
  return { cni: multus === true ? ['multus', cni] : cni, 'ingress-controller': ingressController };
}

const k3sConfig = (options: Extract<Rke2K3sInput, { distribution: 'k3s' }>['options']): Config => ({
  'flannel-backend': options.flannelBackend,
  'disable-network-policy': options.disableNetworkPolicy,
  'disable-helm-controller': options.disableHelmController,
  'secrets-encryption': options.secretsEncryption,
  'system-default-registry': options.systemDefaultRegistry,
});

function snapshotConfig(given: Rke2K3sInput['options']['etcdSnapshots'], folder: string): Config {
  if (given === undefined) return {};
  const { enabled, schedule, retention, compress, s3 } = given;
  const common = {
    'etcd-disable-snapshots': enabled ? undefined : true,
    'etcd-snapshot-schedule-cron': schedule,
    'etcd-snapshot-retention': retention,
    'etcd-snapshot-compress': compress,
  };
  if (s3 === undefined) return common;
  return {
    ...common,
    'etcd-s3': true,
    'etcd-s3-endpoint': s3.endpoint,
    'etcd-s3-region': s3.region,
    'etcd-s3-bucket': s3.bucket,
    'etcd-s3-folder': s3.folder,
    'etcd-s3-endpoint-ca': s3.caSecretRef === undefined ? undefined : s3CaFile(folder),
  };
}

/** Names and addresses in the server's certificate: all that clients and nodes use. */
function tlsSanConfig(input: Rke2K3sInput, node: Node): Config {
  const { registration } = layoutOf(input);
  const given = input.options.tlsSans ?? [];
  return { 'tls-san': [...new Set([registration, node.address, internalAddress(node), ...given])] };
}

/** Disables the parts of a server that a node with only one of the roles does not need. */
function disabledComponents(input: Rke2K3sInput, { roles }: Node): Config {
  const api = roles.includes('controlplane') ? undefined : true;
  const noEtcd = datastoreType(input) === 'etcd' && !roles.includes('etcd') ? true : undefined;
  return {
    'disable-apiserver': api,
    'disable-controller-manager': api,
    'disable-scheduler': api,
    'disable-etcd': noEtcd,
  };
}

const args = (given: Readonly<Record<string, string>> | undefined): readonly string[] | undefined =>
  given === undefined
    ? undefined
    : Object.keys(given)
        .sort()
        .map((name) => `${name}=${given[name] ?? ''}`);

/** `config.yaml.d/50-kindred.yaml`: the same format as `config.yaml`, only secrets. */
function secretConfig(input: Rke2K3sInput, node: Node): ValueSource {
  const parts: (string | ValueSource)[] = ['token: ', joinTokenValue(input).from, '\n'];
  const credentials = input.options.etcdSnapshots?.s3?.credentialsSecretRef;
  if (isServer(node) && credentials !== undefined) {
    parts.push('etcd-s3-access-key: ', secretKeySource(credentials, 'accessKey'), '\n');
    parts.push('etcd-s3-secret-key: ', secretKeySource(credentials, 'secretKey'), '\n');
  }
  const endpoint = input.distribution === 'k3s' ? input.options.datastore?.endpointSecretRef : undefined;
  if (isServer(node) && endpoint !== undefined) parts.push('datastore-endpoint: ', { secret: endpoint }, '\n');
  return { template: parts };
}

const secretKeySource = (ref: { readonly namespace: string; readonly name: string }, key: string): ValueSource => {
  const secret: ObjectKeyRef = { ...ref, key };
  return { secret };
};

type Parts = readonly (string | ValueSource)[];

/** `registries.yaml`: mirrors, and credentials and certificates, by host. */
function registriesTemplate(input: Rke2K3sInput): Parts {
  const { configFolder } = distributionInfo(input);
  const registries = input.options.registries ?? [];
  const mirrors = registries.filter(({ endpoints = [] }) => endpoints.length > 0);
  const configs = registries.flatMap(({ host, credentialsSecretRef: credentials, caSecretRef }, i): Parts[] => {
    if (credentials === undefined && caSecretRef === undefined) return [];
    const auth: Parts =
      credentials === undefined
        ? []
        : [
            ...['    auth:\n      username: ', secretKeySource(credentials, 'username')],
            ...['\n      password: ', secretKeySource(credentials, 'password'), '\n'],
          ];
    const ca = JSON.stringify(registryCaFile(configFolder, i));
    return [
      [
        `  ${JSON.stringify(host)}:\n`,
        ...auth,
        ...(caSecretRef === undefined ? [] : [`    tls:\n      ca_file: ${ca}\n`]),
      ],
    ];
  });
  return [
    ...(mirrors.length === 0 ? [] : ['mirrors:\n']),
    ...mirrors.map(({ host, endpoints }) => `  ${JSON.stringify(host)}: ${JSON.stringify({ endpoint: endpoints })}\n`),
    ...(configs.length === 0 ? [] : ['configs:\n', ...configs.flat()]),
  ];
}

/** File on the machine with the CA certificates for an object store. */
const s3CaFile = (configFolder: string): string => `${configFolder}/kindred-s3-ca.pem`;

const registryCaFile = (folder: string, i: number): string => `${folder}/kindred-registry-ca-${i}.pem`;
