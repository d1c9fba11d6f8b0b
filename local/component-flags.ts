import { serviceNetwork, type Pki } from './certificates';
import { loopback } from './ports';

/**
 * The flags of etcd. Durability is off: the data lives only as long as the run, and fsync takes most of a
 * write's time.
 */
export function etcdArgs(dataFolder: string, clientPort: number, peerPort: number): string[] {
  const client = `http://${loopback}:${clientPort}`;
  const peer = `http://${loopback}:${peerPort}`;
  return [
    '--name=default',
    `--data-dir=${dataFolder}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

/** What the API server's flags depend on. */
export interface ApiServerSettings {
  readonly pki: Pki;
  readonly port: number;
  readonly etcdUrl: string;
  /** An existing directory for certificates that it generates; it gets ours, so nothing is written there. */
  readonly certFolder: string;
  readonly auditPolicyFile: string;
  readonly auditLogFile: string;
  /**
   * Whether a controller manager runs, which creates the `default` ServiceAccount that admission requires for
   * Pods.
   */
  readonly serviceAccountAdmission: boolean;
  readonly extra: readonly string[];
}

/** The flags of kube-apiserver; those in `extra` come last and win. */
export function apiServerArgs(settings: ApiServerSettings): string[] {
  const { files } = settings.pki;
  return [
    `--bind-address=${loopback}`,
    `--advertise-address=${loopback}`,
    `--secure-port=${settings.port}`,
    `--etcd-servers=${settings.etcdUrl}`,
    `--cert-dir=${settings.certFolder}`,
    `--tls-cert-file=${files.serverCertificate}`,
    `--tls-private-key-file=${files.serverKey}`,
    `--client-ca-file=${files.authorityCertificate}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    `--service-cluster-ip-range=${serviceNetwork.range}`,
    // Endpoints may not be loopback addresses: the reconciler would only fail and log.
    '--endpoint-reconciler-type=none',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement',
    ...(settings.serviceAccountAdmission ? [] : ['--disable-admission-plugins=ServiceAccount']),
    '--allow-privileged=true',
    `--audit-policy-file=${settings.auditPolicyFile}`,
    `--audit-log-path=${settings.auditLogFile}`,
    '--audit-log-mode=blocking',
    '--audit-log-maxsize=0', // one file, however long
    ...settings.extra,
  ];
}

/** The flags of kube-controller-manager: every default controller, no port, no leader election. */
export function controllerManagerArgs(kubeconfigFile: string, { files }: Pki): string[] {
  return [
    `--kubeconfig=${kubeconfigFile}`,
    '--secure-port=0',
    '--leader-elect=false',
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${files.authorityCertificate}`,
    `--cluster-signing-cert-file=${files.authorityCertificate}`,
    `--cluster-signing-key-file=${files.authorityKey}`,
    '--use-service-account-credentials=true',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ];
}

/** The flags of kube-scheduler: no port, no leader election. */
export function schedulerArgs(kubeconfigFile: string): string[] {
  return [
    `--kubeconfig=${kubeconfigFile}`,
    '--secure-port=0',
    '--leader-elect=false',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ];
}

/** The flags of KWOK: it plays the kubelet of the nodes that carry its annotation. */
export function kwokArgs(kubeconfigFile: string, stagesFile: string): string[] {
  return [
    `--kubeconfig=${kubeconfigFile}`,
    `--config=${stagesFile}`,
    '--manage-all-nodes=false',
    '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
    '--cidr=10.244.0.0/16',
    '--node-ip=10.0.0.1',
    '--node-lease-duration-seconds=40',
  ];
}
