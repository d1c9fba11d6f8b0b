import type { K3sInput, Rke2Input } from '../cluster/cluster-input';

/** The input of a cluster of RKE2 or K3s, which a script installs on each machine and systemd runs there. */
export type Rke2K3sInput = Rke2Input | K3sInput;

/**
 * What differs between RKE2 and K3s on a machine. Sources: their documentation of the installer, the
 * configuration file and the commands.
 */
export interface DistributionInfo {
  readonly label: string;
  /** The executable. */
  readonly program: string;
  /** systemd's name of the service. */
  readonly service: Readonly<Record<'server' | 'agent', string>>;
  readonly installerUrl: string;
  /** Port of a server where nodes join. */
  readonly registrationPort: number;
  /** Directory of the configuration. */
  readonly configFolder: string;
  /** Directory of the data: `dataDir` if that is set. */
  readonly dataFolder: string;
  /** The administrator's kubeconfig on a server. */
  readonly kubeconfig: string;
  /** Scripts that uninstall the distribution; the first that exists is run. */
  readonly uninstallers: Readonly<Record<'server' | 'agent', readonly string[]>>;
  /** Environment variable of the uninstaller for the directory of the data. */
  readonly dataVariable: string;
}

/** The facts of a cluster's distribution, with the cluster's own `dataDir`. */
export function distributionInfo({ distribution, options }: Rke2K3sInput): DistributionInfo {
  const facts = distribution === 'rke2' ? RKE2 : K3S;
  return options.dataDir === undefined ? facts : { ...facts, dataFolder: options.dataDir };
}

const RKE2: DistributionInfo = {
  label: 'RKE2',
  program: 'rke2',
  service: { server: 'rke2-server', agent: 'rke2-agent' },
  installerUrl: 'https://get.rke2.io',
  registrationPort: 9345,
  configFolder: '/etc/rancher/rke2',
  dataFolder: '/var/lib/rancher/rke2',
  kubeconfig: '/etc/rancher/rke2/rke2.yaml',
  uninstallers: { server: ['rke2-uninstall.sh'], agent: ['rke2-uninstall.sh'] },
  dataVariable: 'RKE2_DATA_DIR',
};

const K3S: DistributionInfo = {
  label: 'K3s',
  program: 'k3s',
  service: { server: 'k3s', agent: 'k3s-agent' },
  installerUrl: 'https://get.k3s.io',
  registrationPort: 6443,
  configFolder: '/etc/rancher/k3s',
  dataFolder: '/var/lib/rancher/k3s',
  kubeconfig: '/etc/rancher/k3s/k3s.yaml',
  uninstallers: {
    server: ['k3s-uninstall.sh', 'k3s-agent-uninstall.sh'],
    agent: ['k3s-agent-uninstall.sh', 'k3s-uninstall.sh'],
  },
  dataVariable: 'K3S_DATA_DIR',
};
