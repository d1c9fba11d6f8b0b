import { dump } from 'js-yaml';
import { nodeAddress, podNetwork, podRange } from './network';

/** The image of the sandbox of every pod. Its name has a host, because containerd would add docker.io. */
export const sandboxImage = 'kindred.local/pause:1';

/** What the configuration of a node depends on. */
interface NodeSettings {
  readonly name: string;
  /** From 1 on. */
  readonly number: number;
  /** The folder of the node. */
  readonly folder: string;
  /** The folder of the CNI plugins. */
  readonly cniPlugins: string;
  /** The paths of the certificates that the kubelet needs. */
  readonly certificates: { readonly authority: string; readonly server: string; readonly key: string };
}

/** containerd, with everything below the node's folder or in its own /run. */
export function containerdConfig({ folder, cniPlugins }: NodeSettings): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "${folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]

[grpc]
address = "${containerdSocket}"

[${cri}]
sandbox_image = "${sandboxImage}"
# Lowering the score needs CAP_SYS_RESOURCE, which root in a container does not have.
restrict_oom_score_adj = true

[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
SystemdCgroup = false

[${cri}.cni]
bin_dir = "${cniPlugins}"
conf_dir = "${folder}/cni"
`;
}

/** Where containerd listens, in the node's own /run. */
export const containerdSocket = '/run/containerd/containerd.sock';

/** The pod network of the node: a bridge with the node's part of the addresses. */
export function cniConfig({ number, folder }: NodeSettings): string {
  const bridge = {
    type: 'bridge',
    bridge: 'pods',
    isGateway: true,
    hairpinMode: true,
    ipam: {
      type: 'host-local',
      dataDir: `${folder}/cni-addresses`,
      ranges: [[{ subnet: podRange(number) }]],
      routes: [{ dst: '0.0.0.0/0' }],
    },
  };
  const plugins = [bridge, { type: 'portmap', capabilities: { portMappings: true } }];
  return JSON.stringify({ cniVersion: '0.4.0', name: 'pods', plugins });
}

/** The kubelet: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1 */
export function kubeletConfig({ certificates }: NodeSettings): string {
  return dump({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: certificates.authority },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: certificates.server,
    tlsPrivateKeyFile: certificates.key,
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    podLogsDir: '/var/log/pods',
    // Pods resolve no names: they reach Services by their addresses.
    resolvConf: '',
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    enforceNodeAllocatable: [],
    oomScoreAdj: 0,
    // The machine is shared: how full its disk and memory are says nothing about this node.
    evictionHard: { 'memory.available': '0%', 'nodefs.available': '0%', 'imagefs.available': '0%' },
    imageGCHighThresholdPercent: 100,
    maxPods: 200,
  });
}

/** kube-proxy: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1 */
export function kubeProxyConfig({ name, folder, number }: NodeSettings): string {
  return dump({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clientConnection: { kubeconfig: `${folder}/kube-proxy.kubeconfig` },
    hostnameOverride: name,
    bindAddress: nodeAddress(number),
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
    clusterCIDR: podNetwork,
    detectLocalMode: 'ClusterCIDR',
    oomScoreAdj: 0,
    // The limits of connection tracking belong to the machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  });
}
