import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import type { AnyKind, KindObject, KindSpec } from '../../constructs/kind/kind';
import { Cluster, Kubeconfig, provisionerKinds } from '../../constructs/kinds';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import { provisioner } from '../../constructs/platform';
import type { OperatorProcess } from '../../testing';
import { waitFor } from '../../testing/wait-for';
import { FAKE_INSTALLER, buildFakeDistributions, startHosts, type Hosts, type TestHost } from './hosts';
import { recordProcesses, encodingsOf, type ProcessRecording } from './hosts/leaks';
import { hasCondition, isReadyNow } from './assertions';
import { readPid } from './processes';
import { installFakeRke, type FakeRkeBinary } from './rke/rke';
import { temporaryFolder } from './temporary-folder';
import { useTestEnv, type TestEnv } from './test-env';

export { FAKE_INSTALLER };

/** Where Secrets that specs name are, besides the provisioner's own namespace. */
export const MACHINES_NAMESPACE = 'machines';
export const STATE_NAMESPACE = 'kindred-system';

/** A control plane with the provisioner's part of the platform, and the provisioner under its own account. */
export class ProvisionerTestEnv {
  readonly folder = temporaryFolder('kindred-provisioner-');
  readonly configDir = join(this.folder, 'config');
  readonly keyDir = join(this.folder, 'keys');
  readonly env: TestEnv;
  /** Its environment: where `rke` is. */
  path = '/usr/bin:/bin';

  constructor() {
    this.env = useTestEnv({
      kinds: provisionerKinds,
      program: 'provisioner',
      operator: false,
      prepare: async (env) => {
        for (const folder of [this.configDir, this.keyDir]) mkdirSync(folder, { mode: 0o700 });
        await env.kubectl(['create', 'namespace', MACHINES_NAMESPACE]);
      },
      platformOperator: provisioner({ image: 'none', kinds: provisionerKinds, secretNamespaces: [MACHINES_NAMESPACE] }),
    });
  }

  /** Starts a provisioner, and waits until it leads. */
  async start(args: readonly string[] = []): Promise<OperatorProcess> {
    const operator = await this.launch(args);
    await operator.waitUntilReconciling();
    return operator;
  }

  /** Starts a provisioner; it stands by while another leads. */
  launch(args: readonly string[] = []): Promise<OperatorProcess> {
    const own = [`--config-dir=${this.configDir}`, `--key-dir=${this.keyDir}`, ...args];
    return this.env.start(own, { PATH: this.path });
  }

  /** Waits until the provisioner has reconciled objects of a kind so often since it was started. */
  async waitForReconciles(kind: AnyKind, times: number): Promise<void> {
    await this.env.eventually(`${kind.kind} to have been looked at`, async () => {
      const metrics = await this.env.operator.metrics();
      const labels = { controller: kind.crdName };
      return metrics.sum('controller_runtime_reconcile_total', labels) >= times ? true : undefined;
    });
  }

  async annotate(kind: AnyKind, name: string, annotations: Readonly<Record<string, string>>): Promise<void> {
    await this.env.patch(kind.type, { name }, { metadata: { annotations } });
  }

  /** Puts a Secret there, or replaces its values. */
  async secret(name: string, values: Readonly<Record<string, string>>, namespace = MACHINES_NAMESPACE): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data };
    await this.env.client.apply(owned.Secret, body, { fieldManager: 'e2e' });
  }

  /** Decoded values of a Secret. */
  async values(name: string, namespace = STATE_NAMESPACE): Promise<Readonly<Record<string, string>>> {
    const secret = (await this.env.get(owned.Secret, { name, namespace })) as KubeObject & {
      readonly data: Readonly<Record<string, string>>;
    };
    return Object.fromEntries(
      Object.entries(secret.data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  }

  /** Waits until a condition stands as wanted; the error shows how the object stands. */
  async waitUntil<K extends AnyKind>(
    kind: K,
    name: string,
    describe: string,
    wanted: (object: KindObject<K>) => boolean,
  ): Promise<KindObject<K>> {
    return this.env.waitUntil(kind.type as ResourceType<KindObject<K>>, { name }, describe, wanted);
  }

  waitUntilReady(kind: AnyKind, name: string): Promise<KindObject<AnyKind>> {
    return this.waitUntil(kind, name, 'Ready', isReadyNow);
  }

  waitUntilStalled(kind: AnyKind, name: string): Promise<KindObject<AnyKind>> {
    return this.waitUntil(kind, name, 'Stalled', (object) => hasCondition(object, 'Stalled', 'True'));
  }

  async waitUntilGone(type: ResourceType, name: string): Promise<void> {
    await this.env.waitUntilGone(type, { name });
  }
}

/** Lets every host take the key of the first one, since a Cluster has one key for all. @returns that key */
export async function shareSshKey(hosts: Hosts): Promise<string> {
  const [first, ...others] = hosts.all;
  if (first === undefined) throw new Error('there is no host');
  const keys = await first.exec('cat /etc/ssh/keys/authorized');
  for (const host of others) await host.exec('cat >>/etc/ssh/keys/authorized', keys);
  return first.privateKey;
}

type Role = 'controlplane' | 'etcd' | 'worker';

/** A node of a spec. */
export function nodeSpec(
  host: TestHost,
  ...roles: readonly Role[]
): { address: string; user: string; roles: Role[]; hostKey: string } {
  return { address: host.address, user: 'root', roles: [...roles], hostKey: host.hostKey };
}

/** A recording of what processes showed that ends when it is first asked for, so that no test leaves it running. */
export function lazyRecording(recording: ProcessRecording): { readonly now: () => Promise<string> } {
  let seen: Promise<string> | undefined;
  return { now: () => (seen ??= recording.stop()) };
}

export { Cluster, Kubeconfig };

/** Bare machines for a Cluster of K3s. They take one key, which the provisioner has as the Secret `ssh`. */
export class K3sMachines {
  /** The parts of a Cluster's spec that are the same for all of these machines. */
  readonly spec = {
    distribution: 'k3s' as const,
    version: 'v1.34.1+k3s1',
    installer: { path: FAKE_INSTALLER },
    sshKeySecretRef: { namespace: MACHINES_NAMESPACE, name: 'ssh', key: 'ssh-privatekey' },
  };

  private constructor(
    readonly hosts: Hosts,
    private readonly key: string,
    private readonly seen: ReturnType<typeof lazyRecording>,
  ) {}

  /** Starts them, records from then on what processes show, and starts the provisioner. */
  static async start(world: ProvisionerTestEnv, names: readonly string[]): Promise<K3sMachines> {
    const parts = await buildFakeDistributions(temporaryFolder('kindred-stand-ins-'));
    const hosts = await startHosts({ names, mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    const key = await shareSshKey(hosts);
    await world.secret('ssh', { 'ssh-privatekey': key });
    const seen = lazyRecording(await recordProcesses());
    await world.start();
    return new K3sMachines(hosts, key, seen);
  }

  async end(): Promise<void> {
    await this.seen.now();
    await this.hosts.end();
  }

  /** The forms of a line of the key that a process or the provisioner's log showed. Ends the recording. */
  async secretsShown({ env }: ProvisionerTestEnv): Promise<readonly string[]> {
    const all = await this.seen.now();
    const logs = JSON.stringify(env.operator.log.all);
    return encodingsOf(this.key.split('\n')[3] ?? this.key).filter((text) => all.includes(text) || logs.includes(text));
  }
}

/** A stand-in for `rke` on the provisioner's PATH, whose clusters are this test's own control plane. */
export class FakeRke {
  readonly standIn: FakeRkeBinary;
  private readonly gate: string;
  private readonly arrived: string;

  constructor(private readonly world: ProvisionerTestEnv) {
    const folder = join(world.folder, 'rke');
    mkdirSync(folder);
    this.standIn = installFakeRke(folder);
    this.gate = join(folder, 'gate');
    this.arrived = join(folder, 'arrived');
    world.path = `${this.standIn.bin}:/usr/bin:/bin`;
  }

  /** Has `rke up` make kubeconfigs as the real one writes them, of this test's own API server. Call it once that runs. */
  install(): void {
    const kubeconfig = join(this.standIn.folder, 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(asRkeWrites(readFileSync(this.world.env.plane.adminKubeconfig, 'utf8'))));
    // It stands still while there is a gate.
    const hook = `#!/bin/sh\necho "$1" >>'${this.arrived}'\nwhile [ -e '${this.gate}' ]; do sleep 0.1; done\ncat '${kubeconfig}'\n`;
    writeFileSync(this.hook, hook, { mode: 0o755 });
    this.control();
  }

  private get hook(): string {
    return join(this.standIn.folder, 'hook');
  }

  /** What it is to do besides. */
  control(control: Parameters<FakeRkeBinary['control']>[0] = {}): void {
    this.standIn.control({ hook: this.hook, ...control });
  }

  /** From now on `rke up` stands still when its machines are set up. */
  pause(): void {
    rmSync(this.arrived, { force: true });
    writeFileSync(this.gate, '');
  }

  /** Waits until an `rke up` stands still. */
  async waitUntilPaused(): Promise<void> {
    await waitFor(() => Promise.resolve(existsSync(this.arrived) ? true : undefined), { describe: 'rke at its gate' });
  }

  resume(): void {
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
      process.kill(readPid(`/dev/shm/kindred-rke-0-${cluster}/${file}`), 'SIGKILL');
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
export async function installFakeDocker(hosts: readonly TestHost[]): Promise<void> {
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
      ...(i === 0 ? nodeSpec(hosts.get(name), 'controlplane', 'etcd', 'worker') : nodeSpec(hosts.get(name), 'worker')),
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
