/** What an exec plugin is started with, as the kubeconfig has it. */
interface ExecConfig {
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  env?: { readonly name: string; readonly value: string }[] | null;
}

interface ClusterEntry {
  readonly server: string;
  readonly caData?: string;
  readonly tlsServerName?: string;
  readonly skipTLSVerify: boolean;
}

interface ConfigWithExec {
  getCurrentUser(): { readonly exec?: unknown } | null;
  getCurrentCluster(): ClusterEntry | null;
}

const NAME = 'KUBERNETES_EXEC_INFO';

/**
 * Lets the exec plugin know, as client-go does, which version of the protocol to speak, that nobody sits at a terminal, and, if the
 * kubeconfig says so, which cluster it is for. The package leaves this out.
 *
 * Source: Kubernetes documentation, "client-go credential plugins", input and output formats.
 */
export function passExecInfo(config: ConfigWithExec): void {
  const exec = config.getCurrentUser()?.exec as ExecConfig | null | undefined;
  const cluster = config.getCurrentCluster();
  if (exec === undefined || exec === null || cluster === null) return;
  const env = exec.env ?? [];
  if (env.some(({ name }) => name === NAME)) return;
  const value = JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion,
    spec: { interactive: false, ...(exec.provideClusterInfo === true ? { cluster: clusterInfo(cluster) } : {}) },
  });
  exec.env = [...env, { name: NAME, value }];
}

function clusterInfo(cluster: ClusterEntry): Record<string, unknown> {
  return {
    server: cluster.server,
    'certificate-authority-data': cluster.caData,
    'tls-server-name': cluster.tlsServerName,
    ...(cluster.skipTLSVerify ? { 'insecure-skip-tls-verify': true } : {}),
  };
}
