import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';
import {
  Cluster,
  ProvisionerTestEnv,
  FakeRke,
  clusterYml,
  installFakeDocker,
  shareSshKey,
  rkeSpec,
} from '../../support/provisioner-env';
import { findCondition } from '../../support/assertions';

/** RKE checks no host key of its own: what a machine gets that has another one than it had, while its cluster is changed and taken down. */
describeOnHosts('the host keys of a Cluster of RKE', () => {
  const world = new ProvisionerTestEnv();
  const rke = new FakeRke(world);
  /** Of this process alone: RKE's folders for runs are this machine's. */
  const names = (name: string): string => `${name}-${String(process.pid)}`;
  let hosts: Hosts;

  const hostKeys = (...of: readonly TestHost[]): { address: string; hostKey: string }[] =>
    of.map(({ address, hostKey }) => ({ address, hostKey }));
  const runs = (): readonly number[] => [rke.count('init'), rke.count('up'), rke.count('remove')];
  const failed = (name: string, reason: string): Promise<KubeObject> =>
    world.waitUntil(Cluster, name, reason, (object) => findCondition(object, 'Ready')?.reason === reason);
  const messageOf = (object: KubeObject): string => findCondition(object, 'Ready')?.message ?? '';

  /** From now on whoever answers at that address is somebody else, who takes any key and keeps what it is sent. */
  async function impersonate(host: TestHost): Promise<void> {
    await host.exec('rm -rf /home/admin/.kindred');
    await host.changeHostKey();
  }
  const isUntouched = async (host: TestHost): Promise<void> => {
    await expect(host.exec('ls -A /home/admin/.kindred')).rejects.toThrow(/No such file/);
  };

  beforeAll(async () => {
    hosts = await startHosts({ names: ['n1', 'n2', 'n3'] });
    await installFakeDocker(hosts.all);
    const key = await shareSshKey(hosts);
    rke.install();
    writeFileSync(join(world.configDir, 'id_rke'), key);
    await world.secret('ssh', { 'ssh-privatekey': key });
    await world.start(['--runs=1']);
  }, 120_000);
  afterAll(() => hosts.end());

  test('given in the spec: an upgrade and a removal go to no machine while one of them has another key', async () => {
    const name = names('pinned');
    const spec = { ...rkeSpec(hosts, ['n1', 'n2']), maxAttempts: 1 };
    await world.env.createOfKind(Cluster, { name }, spec);
    await world.waitUntilReady(Cluster, name);
    const before = runs();
    await impersonate(hosts.get('n1'));
    await world.env.patchSpec(Cluster, { name }, { version: 'v1.30.6-rancher1-1' });
    expect(messageOf(await failed(name, 'HostKeyMismatch'))).toContain(hosts.get('n1').address);
    await isUntouched(hosts.get('n1'));
    await world.env.client.delete(Cluster.type, { name });
    const removal = await world.waitUntil(Cluster, name, 'a removal that failed', (object) =>
      messageOf(object).includes('kindred.dev/force-remove'),
    );
    expect(findCondition(removal, 'Ready')?.reason).toBe('HostKeyMismatch');
    await isUntouched(hosts.get('n1'));
    expect(runs()).toEqual(before);
    // A person has looked: it was installed anew.
    await world.env.patchSpec(Cluster, { name }, { nodes: rkeSpec(hosts, ['n1', 'n2']).nodes });
    await world.waitUntilGone(Cluster.type, name);
    expect(runs()).toEqual([before[0], before[1], before[2]! + 1]);
  });

  test('met at first use: the machines of a cluster.yml with a key file of its own are held to them', async () => {
    const name = names('met');
    const text = clusterYml(hosts.get('n2'), 'ssh_key_path: id_rke\n');
    writeFileSync(join(world.configDir, 'met.yml'), text);
    await world.env.createOfKind(Cluster, { name }, { configPath: 'met.yml' });
    await world.waitUntilReady(Cluster, name);
    const before = runs();
    await impersonate(hosts.get('n2'));
    writeFileSync(join(world.configDir, 'met.yml'), text.replace('v1.30.5', 'v1.30.6'));
    await world.annotate(Cluster, name, { 'kindred.dev/reconcile-at': '1' });
    expect(messageOf(await failed(name, 'HostKeyMismatch'))).toContain(hosts.get('n2').address);
    await isUntouched(hosts.get('n2'));
    expect(runs()).toEqual(before);
    await world.env.patchSpec(Cluster, { name }, { hostKeys: hostKeys(hosts.get('n2')) });
    await world.waitUntilReady(Cluster, name);
    // A key alone is no reason to run again, and one that is not given any more is held.
    const since = runs();
    await world.env.patchSpec(Cluster, { name }, { hostKeys: null });
    await world.waitUntilReady(Cluster, name);
    expect(runs()).toEqual(since);
    await world.env.client.delete(Cluster.type, { name });
    await world.waitUntilGone(Cluster.type, name);
    expect(rke.count('remove')).toBe(before[2]! + 1);
  });

  test('of a bastion: nothing is sent through one that has another key than it was met with', async () => {
    const name = names('behind');
    const [bastion, host] = [hosts.get('n2'), hosts.get('n3')];
    const login = `bastion_host:\n  address: ${bastion.address}\n  user: admin\n`;
    const text = clusterYml(host, `${login}ssh_key_path: id_rke\n`);
    writeFileSync(join(world.configDir, 'behind.yml'), text);
    await world.env.createOfKind(Cluster, { name }, { configPath: 'behind.yml' });
    await world.waitUntilReady(Cluster, name);
    const before = runs();
    await bastion.changeHostKey();
    await world.env.client.delete(Cluster.type, { name });
    expect(messageOf(await failed(name, 'HostKeyMismatch'))).toContain(bastion.address);
    expect(runs()).toEqual(before);
    await world.env.patchSpec(Cluster, { name }, { hostKeys: hostKeys(bastion) });
    await world.waitUntilGone(Cluster.type, name);
  });

  test('required: a machine without one is refused before anything is sent to it, in a cluster.yml too', async () => {
    await world.env.operator.stop();
    await world.start(['--runs=1', '--require-host-keys']);
    const name = names('required');
    const sshKeySecretRef = { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' };
    const before = runs();
    await world.secret('cluster', { yml: clusterYml(hosts.get('n3')) });
    const configSecretRef = { namespace: 'machines', name: 'cluster', key: 'yml' };
    await world.env.createOfKind(Cluster, { name }, { configSecretRef, sshKeySecretRef });
    const refusal = messageOf(await failed(name, 'ErrInvalidConfig'));
    expect(refusal).toContain('nodes[0]');
    expect(refusal).toContain('spec.hostKeys');
    expect(runs()).toEqual(before);
    await world.env.patchSpec(Cluster, { name }, { hostKeys: hostKeys(hosts.get('n3')) });
    await world.waitUntilReady(Cluster, name);
    await world.env.client.delete(Cluster.type, { name });
    await world.waitUntilGone(Cluster.type, name);
    const typed = rkeSpec(hosts, ['n3']);
    const unpinned = typed.nodes!.map((node) => ({ ...node, hostKey: undefined }));
    await world.env.createOfKind(Cluster, { name: names('typed') }, { ...typed, nodes: unpinned });
    expect(messageOf(await failed(names('typed'), 'ErrInvalidConfig'))).toContain('nodes[0].hostKey');
  });
});
