import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { kubectl } from '../../../testing/kubectl';
import { RemoteCluster, type NodeArgs, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { FAKE_INSTALLER, buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import {
  DeploymentError,
  Engine,
  InterruptedError,
  commandProvider,
  kubernetesProvider,
  type AnnouncedOperation,
  type Result,
  type RunOptions,
} from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

/**
 * RemoteCluster against machines: the program's registrations are carried out as Pulumi would, over real SSH, by OpenSSH servers; only the
 * installers are stand-ins, which start a real control plane.
 */
jest.setTimeout(600_000);

type Args = Extract<RemoteClusterArgs, { distribution: 'k3s' }>;

const ALL: NodeArgs['roles'] = ['controlplane', 'etcd', 'worker'];
const node = (host: TestHost, roles: NodeArgs['roles'], more: Partial<NodeArgs> = {}): NodeArgs => ({
  address: host.address,
  hostKey: host.hostKey,
  user: 'root',
  roles,
  ...more,
});

/** A program with one cluster. */
const program = (args: Omit<Args, 'distribution' | 'installer'>) => () => {
  const cluster = new RemoteCluster('prod', { distribution: 'k3s', installer: { path: FAKE_INSTALLER }, ...args });
  return { kubeconfig: cluster.kubeconfig, nodes: cluster.nodes };
};

const newEngine = () => new Engine({ providers: [commandProvider(), kubernetesProvider()] });

/** Nothing that anybody can read of a run holds a secret of it, as it is or in base64. */
function expectNoSecrets(text: string, secrets: readonly string[]): void {
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(16);
    for (const form of [secret, Buffer.from(secret).toString('base64')]) expect(text.includes(form)).toBe(false);
  }
}

/** A line from the middle of a private key. */
const keyLine = (host: TestHost): string => host.privateKey.split('\n')[2] ?? '';

describeOnHosts('RemoteCluster on machines', () => {
  const folder = temporaryFolder('kindred-remote-cluster-');
  const code = temporaryFolder('kindred-stand-in-');
  let hosts: Hosts;
  let one: TestHost;
  let two: TestHost;
  let engine: Engine;
  let version = 'v1.33.4+k3s1';

  beforeAll(async () => {
    const parts = await buildFakeDistributions(code);
    hosts = await startHosts({ names: ['one', 'two'], mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    [one, two] = [hosts.get('one'), hosts.get('two')];
    // One key for all machines, as a cluster has.
    const keys = await one.exec('cat /etc/ssh/keys/authorized');
    await two.exec('cat >>/etc/ssh/keys/authorized', keys);
    engine = newEngine();
  });
  afterAll(() => hosts.end());

  const args = (more: Partial<Args> = {}): Args => ({
    distribution: 'k3s',
    version,
    nodes: [node(one, ALL)],
    sshKey: pulumi.secret(one.privateKey),
    ...more,
  });
  const both = (more: Partial<Args> = {}): Args => args({ nodes: [node(one, ALL), node(two, ['worker'])], ...more });

  /** The names of the cluster's nodes, asked through the kubeconfig that came back. */
  async function nodeNames(result: Result, which: readonly string[] = []): Promise<readonly string[]> {
    const kubeconfig = result.output('kubeconfig');
    if (typeof kubeconfig !== 'string' || !result.isSecret('kubeconfig'))
      throw new Error('no kubeconfig, or not as a secret');
    const file = join(folder, 'kubeconfig');
    writeFileSync(file, kubeconfig, { mode: 0o600 });
    const { stdout } = await kubectl({ adminKubeconfig: file, dataDir: folder }, [
      'get',
      'nodes',
      ...which,
      '-o',
      'name',
    ]);
    return stdout.trim().split('\n').sort();
  }

  const leftOn = (host: TestHost) =>
    host.exec('ls -d /usr/local/bin/k3s /etc/rancher/k3s /var/lib/rancher/k3s/server 2>/dev/null || echo nothing');
  const commands = () =>
    engine.state.resources.filter(({ type }) => type.startsWith('command:')).map(({ name }) => name);

  /** Kills a run at each of its operations in turn, going on from what the last left, until one is not reached. */
  async function interruptedEverywhere(run: (options: RunOptions) => Promise<Result>): Promise<Result> {
    for (let at = 1; ; at++) {
      try {
        return await run({ interrupt: { at, when: at % 2 === 0 ? 'before' : 'after' } });
      } catch (error) {
        if (!(error instanceof InterruptedError)) throw error;
      }
    }
  }

  test('makes a cluster though it is killed at every step, and then has nothing to do', async () => {
    const made = await interruptedEverywhere((options) => engine.up(program(args()), options));
    expect(await nodeNames(made)).toEqual(['node/one']);

    const again = await engine.up(program(args()));
    expect(again.summary).toEqual([]);
    const token = await one.exec('cat /var/lib/kindred/prod/token');
    expectNoSecrets(made.plainText() + again.plainText(), [keyLine(one), token, made.output('kubeconfig') as string]);
  });

  test('says what is wrong with a machine, what to do, and nothing else', async () => {
    await two.exec('mkdir -p /var/lib/kindred && mv /usr/bin/flock /usr/bin/flock.away');
    const failure = await engine.up(program(both())).catch((error: unknown) => error);
    await two.exec('mv /usr/bin/flock.away /usr/bin/flock');
    if (!(failure instanceof DeploymentError)) throw new Error('it did not fail', { cause: failure });
    expect(failure.message).toMatch(/the program flock: is missing; install it/);
    expect(failure.message).toMatch(new RegExp(`prod/${two.address}/preflight@[0-9a-f]{12}`));
    const token = await one.exec('cat /var/lib/kindred/prod/token');
    expectNoSecrets(failure.message + failure.result.plainText(), [keyLine(one), token]);
  });

  test('refuses a machine that is another', async () => {
    const nodes = [node(one, ALL), node(two, ['worker'], { hostKey: one.hostKey })];
    await expect(engine.up(program(args({ nodes, dialAttempts: 1 })))).rejects.toThrow(/host key|verification failed/i);
    expect(await leftOn(two)).toBe('nothing\n');
  });

  test('adds a machine, and touches the others no more than it must', async () => {
    const result = await engine.up(program(both()));
    expect(await nodeNames(result)).toEqual(['node/one', 'node/two']);
    const touched = result.changes.filter(({ name }) => name.startsWith(`prod/${one.address}/`));
    // Only looked at again, now with the other machine in mind.
    expect(touched.map(({ op, name }) => `${op} ${name}`)).toEqual([`update prod/${one.address}/preflight`]);
    expect((await engine.up(program(both()))).summary).toEqual([]);
  });

  test('refuses what a cluster cannot become, though Pulumi knows nothing of before, and touches nothing', async () => {
    const state = 'find /var/lib/kindred/prod/marker /etc/rancher -type f | sort | xargs sha256sum';
    const before = await one.exec(state);
    const cannot: readonly (readonly [Partial<Args>, RegExp])[] = [
      [
        { version: 'v1.35.0+k3s1' },
        /v1\.35\.0\+k3s1 skips a minor version: K3s v1\.33\.4\+k3s1 is installed\. Go to a v1\.34 first/,
      ],
      [{ version: 'v1.32.8+k3s1' }, /v1\.32\.8\+k3s1 is older than v1\.33\.4\+k3s1/],
      [
        { options: { clusterCidrs: ['10.99.0.0/16'] } },
        /clusterCidrs: is to change from 10\.42\.0\.0\/16 to 10\.99\.0\.0\/16/,
      ],
    ];
    for (const [more, message] of cannot) await expect(engine.up(program(both(more)))).rejects.toThrow(message);
    expect(await one.exec(state)).toBe(before);
    // The machine that found nothing wrong has answered otherwise than before: the worker, about the range of pods.
    const back = await engine.up(program(both()));
    expect(back.summary.filter((line) => !line.endsWith('/preflight'))).toEqual([]);
  });

  test('takes a new key, which changes nothing on the machines', async () => {
    const marker = 'find /var/lib/kindred/prod/marker -type f | sort | xargs sha256sum';
    const before = await one.exec(marker);
    await one.exec('cat >>/etc/ssh/keys/authorized', await two.exec('head -n 1 /etc/ssh/keys/authorized'));
    const result = await engine.up(program(both({ sshKey: pulumi.secret(two.privateKey) })));
    // Draining says now that the node is known, which installing reads.
    const did = ({ name }: { readonly name: string }): string =>
      name.endsWith('/install') ? 'connection,stdin' : 'connection';
    expect(result.changes.map(({ op, changed }) => `${op} ${String(changed)}`)).toEqual(
      result.changes.map((change) => `update ${did(change)}`),
    );
    expect((await engine.up(program(both({ sshKey: pulumi.secret(two.privateKey) })))).summary).toEqual([]);
    expect(await one.exec(marker)).toBe(before);
  });

  test('upgrades servers before agents', async () => {
    const result = await engine.up(program(both({ version: 'v1.34.1+k3s1' })));
    const order = result.changes.map(({ name }) => name).filter((name) => name.endsWith('/install'));
    expect(order).toEqual([`prod/${one.address}/install`, `prod/${two.address}/install`]);
    for (const host of [one, two]) expect(await host.exec('k3s --version')).toContain('v1.34.1+k3s1');
    expect(await nodeNames(result)).toEqual(['node/one', 'node/two']);
    version = 'v1.34.1+k3s1';
    expect((await engine.up(program(both()))).summary).toEqual([]);
  });

  test('takes a version back that cannot be installed', async () => {
    const running = 'pgrep "etcd|kube|node" | sort';
    const before = await one.exec(running);
    await one.exec('echo "no such release" >/etc/stand-in/fail-install');
    await expect(engine.up(program(both({ version: 'v1.34.9+k3s1' })))).rejects.toThrow(/no such release/);
    await one.exec('rm /etc/stand-in/fail-install');
    const back = await engine.up(program(both()));
    const names = back.changes.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([`prod/${one.address}/install`, `prod/${one.address}/ready`]));
    expect(await nodeNames(back, ['--field-selector', 'spec.unschedulable!=true'])).toEqual(['node/one', 'node/two']);
    expect(await one.exec(running)).toBe(before);
    expect((await engine.up(program(both()))).summary).toEqual([]);
  });

  test('refuses to take a machine off while it is protected, and then drains and cleans it', async () => {
    await expect(engine.up(program(args()))).rejects.toThrow(/protect/);
    await engine.up(program(both({ removable: [two.address] })));
    const result = await engine.up(program(args()));
    expect(await nodeNames(result)).toEqual(['node/one']);
    expect(await leftOn(two)).toBe('nothing\n');
    expect(commands().filter((name) => name.includes(two.address))).toEqual([]);
  });

  test('takes off a machine that never got ready', async () => {
    // The installer ends well, and then the service does not come up.
    const failing = {
      onOperation: ({ name, op }: AnnouncedOperation) => {
        if (op === 'create' && name.endsWith(`${two.address}/ready`)) throw new Error('as the test wants it');
      },
    };
    await expect(engine.up(program(both({ protect: false })), failing)).rejects.toThrow('as the test wants it');
    expect(await leftOn(two)).not.toBe('nothing\n');
    const result = await engine.up(program(args()));
    expect(await nodeNames(result)).toEqual(['node/one']);
    expect(await leftOn(two)).toBe('nothing\n');
  });

  test('lets go of a machine that is gone for ever', async () => {
    await engine.up(program(both()));
    await two.cutNetwork();
    try {
      await engine.up(program(both({ lost: [two.address] })));
      const result = await engine.up(program(args()));
      expect(await nodeNames(result)).toEqual(['node/one']);
      expect(commands().filter((name) => name.includes(two.address))).toEqual([]);
    } finally {
      await two.restoreNetwork();
    }
  });

  test('is not destroyed while it is protected, and then is, though killed at every step', async () => {
    await expect(engine.destroy()).rejects.toThrow(/protect/);
    expect((await engine.up(program(args()))).summary).toEqual([]);
    await engine.up(program(args({ protect: false })));
    await interruptedEverywhere((options) => engine.destroy(options));
    expect(commands()).toEqual([]);
    expect(await leftOn(one)).toBe('nothing\n');
  });
});
