import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import type { Hosts, TestHost } from '../../support/hosts';
import { pidIn } from '../../support/pid-file';
import { installRke, type RkeStandIn } from '../../support/rke';
import { waitFor } from '../../../local/testing';
import type { KindSpec } from '../../../constructs/kind/kind';
import type { Cluster } from '../../../constructs/kinds';
import { node, type ProvisionerWorld } from './world';

/** A stand-in for `rke` on the provisioner's PATH, whose clusters are this test's own control plane. */
export class Rke {
  readonly standIn: RkeStandIn;
  private readonly gate: string;
  private readonly arrived: string;

  constructor(private readonly world: ProvisionerWorld) {
    const folder = join(world.folder, 'rke');
    mkdirSync(folder);
    this.standIn = installRke(folder);
    this.gate = join(folder, 'gate');
    this.arrived = join(folder, 'arrived');
    world.path = `${this.standIn.bin}:/usr/bin:/bin`;
  }

  /** Has `rke up` make kubeconfigs as the real one writes them, of this test's own API server. Call it once that runs. */
  install(): void {
    const kubeconfig = join(this.standIn.folder, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      JSON.stringify(asRkeWrites(readFileSync(this.world.bench.plane.adminKubeconfig, 'utf8'))),
    );
    // It stands still while there is a gate.
    const hook = `#!/bin/sh\necho "$1" >>'${this.arrived}'\nwhile [ -e '${this.gate}' ]; do sleep 0.1; done\ncat '${kubeconfig}'\n`;
    writeFileSync(this.hook, hook, { mode: 0o755 });
    this.control();
  }

  private get hook(): string {
    return join(this.standIn.folder, 'hook');
  }

  /** What it is to do besides. */
  control(control: Parameters<RkeStandIn['control']>[0] = {}): void {
    this.standIn.control({ hook: this.hook, ...control });
  }

  /** From now on `rke up` stands still when its machines are set up. */
  close(): void {
    rmSync(this.arrived, { force: true });
    writeFileSync(this.gate, '');
  }

  /** Waits until an `rke up` stands still. */
  async standsStill(): Promise<void> {
    await waitFor(() => Promise.resolve(existsSync(this.arrived) ? true : undefined), { describe: 'rke at its gate' });
  }

  open(): void {
    rmSync(this.gate, { force: true });
  }

  /** How often it was started for something: `up` leaves out `up --init`. */
  count(command: 'up' | 'init' | 'remove'): number {
    return this.standIn.calls().filter(({ argv }) => {
      const isInit = argv.includes('--init');
      return command === 'init' ? isInit : argv[0] === command && !isInit;
    }).length;
  }

  /** Kills what a provisioner that was killed has left, as the end of its pod does. */
  killOrphans(cluster: string): void {
    for (const file of ['pid', 'rke.pid']) {
      process.kill(pidIn(`/dev/shm/kindred-rke-0-${cluster}/${file}`), 'SIGKILL');
    }
  }
}

/** With the field that RKE adds. */
function asRkeWrites(text: string): object {
  const config = load(text) as { readonly clusters: readonly { readonly name: string; readonly cluster: object }[] };
  const clusters = config.clusters.map(({ name, cluster }) => ({ name, cluster: { 'api-version': 'v1', ...cluster } }));
  return { ...config, clusters };
}

/** Makes hosts what RKE wants machines to be. */
export async function dockerOn(hosts: readonly TestHost[]): Promise<void> {
  const docker = `#!/bin/sh
case "$*" in
  *version*) echo 27.1.1 ;;
  *info*) echo systemd ;;
esac
`;
  const script = `rm -f /usr/local/bin/docker && cat >/usr/local/bin/docker && chmod 755 /usr/local/bin/docker
mount -t tmpfs none /proc/sys/net && mkdir /proc/sys/net/bridge && echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables`;
  await Promise.all(hosts.map((host) => host.exec(script, docker)));
}

/** Typed nodes: the first is all, the others are workers. */
export function rkeSpec(hosts: Hosts, names: readonly string[]): KindSpec<typeof Cluster> {
  return {
    distribution: 'rke' as const,
    version: 'v1.30.5-rancher1-1',
    sshKeySecretRef: { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' },
    nodes: names.map((name, i) => ({
      ...(i === 0 ? node(hosts.get(name), 'controlplane', 'etcd', 'worker') : node(hosts.get(name), 'worker')),
      user: 'admin',
    })),
  };
}

/** A cluster.yml of one machine. */
export function clusterYml(host: TestHost, more = ''): string {
  return `nodes:
  - address: ${host.address}
    user: admin
    role: [controlplane, etcd, worker]
${more}kubernetes_version: v1.30.5-rancher1-1
`;
}
