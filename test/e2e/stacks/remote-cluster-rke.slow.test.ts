import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { decodeOutput, parseScriptResult } from '../../../provision';
import { RemoteCluster, type NodeArgs, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { DeploymentError, Engine, Secret, commandProvider } from '../../support/pulumi-engine';

import { installFakeRke, type FakeRkeBinary } from '../../support/rke/rke';
import { temporaryFolder } from '../../support/temporary-folder';
import { encodingsOf } from '../../support/hosts/leaks';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

/**
 * RKE by RemoteCluster: the preflights and the copies of the state on machines of their own, over real SSH, with a stand-in for `rke` itself, whose
 * machines are files.
 */
jest.setTimeout(300_000);

type Args = Extract<RemoteClusterArgs, { distribution: 'rke' }>;

const PASSWORD = 'CANARY "pass\\word-of-the-registry';

/** Docker for one user alone, as membership in its group gives it; before any that this machine has. */
const DOCKER = `cat >/usr/local/bin/docker <<'END'
#!/bin/sh
if [ "$(id -un)" != admin ]; then echo 'permission denied while trying to connect' >&2; exit 1; fi
case "$*" in
  *version*) echo 24.0.7 ;;
  *info*) echo cgroupfs ;;
esac
END
chmod 755 /usr/local/bin/docker
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables`;

describeOnHosts('RemoteCluster of RKE', () => {
  const folder = temporaryFolder('kindred-remote-rke-');
  const path = process.env['PATH'];
  let hosts: Hosts;
  let one: TestHost;
  let two: TestHost;
  let rke: FakeRkeBinary;
  let engine: Engine;

  beforeAll(async () => {
    hosts = await startHosts({ names: ['one', 'two'] });
    [one, two] = [hosts.get('one'), hosts.get('two')];
    const keys = await one.exec('cat /etc/ssh/keys/authorized');
    await two.exec('cat >>/etc/ssh/keys/authorized', keys);
    await Promise.all(hosts.all.map((host) => host.exec(DOCKER)));
    rke = installFakeRke(join(folder, 'rke'));
    process.env['PATH'] = `${rke.bin}:${path ?? ''}`;
    engine = new Engine({ providers: [commandProvider()] });
  });
  afterAll(async () => {
    process.env['PATH'] = path;
    await hosts.end();
  });

  const node = (host: TestHost, more: Partial<NodeArgs> = {}): NodeArgs => ({
    address: host.address,
    hostKey: host.hostKey,
    user: 'admin',
    roles: ['controlplane', 'etcd', 'worker'],
    ...more,
  });
  const program =
    (more: Partial<Args> = {}) =>
    () => {
      const cluster = new RemoteCluster('old', {
        distribution: 'rke',
        version: 'v1.30.14-rancher1-1',
        nodes: [node(one), node(two, { roles: ['worker'] })],
        sshKey: pulumi.secret(one.privateKey),
        options: {
          privateRegistries: [
            { url: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } },
          ],
        },
        secrets: { 'infra/registry': { username: 'puller', password: pulumi.secret(PASSWORD) } },
        ...more,
      });
      return { kubeconfig: cluster.kubeconfig };
    };

  const copyOnOne = (): Promise<string> => one.exec('cat /home/admin/.kindred/rke/old.state');
  const authority = (copy: string): string => /kube-ca-([A-Za-z0-9+/=]{20,})/.exec(copy)?.[1] ?? 'none';
  const ups = (): readonly string[] =>
    rke
      .calls()
      .map(({ argv }) => argv.join(' '))
      .filter((line) => line.startsWith('up'));

  /** Nothing that anybody can read of a run, nor what rke was started with, holds a secret of it. */
  async function expectNoSecrets(text: string): Promise<void> {
    const all = text + JSON.stringify(rke.calls());
    const keyLine = one.privateKey.split('\n')[2] ?? '';
    for (const secret of [keyLine, PASSWORD, authority(await copyOnOne())]) {
      expect(secret.length).toBeGreaterThan(16);
      for (const form of encodingsOf(secret)) expect(all.includes(form)).toBe(false);
    }
  }

  test('looks at each machine as the user that RKE will be', async () => {
    const failure = await engine
      .up(program({ nodes: [node(one), node(two, { roles: ['worker'], user: 'guest' })] }))
      .catch((error: unknown) => error);
    if (!(failure instanceof DeploymentError)) throw new Error('it did not fail', { cause: failure });
    // Root may use Docker there no more than guest; admin, who looked at the other machine, may.
    expect(failure.message).toContain('guest may not use /var/run/docker.sock');
    expect(failure.message).not.toContain(one.address);
    expect(ups()).toEqual([]);
  });

  test('keeps the state of a run that failed halfway, and the next one goes on with it', async () => {
    rke.control({ fail: 'after-nodes', nodes: 1, always: true });
    const failure = await engine.up(program()).catch((error: unknown) => error);
    if (!(failure instanceof DeploymentError)) throw new Error('it did not fail', { cause: failure });
    expect(failure.message).toContain(`Failed to bring up Worker Plane on [${two.address}]`);
    expect(engine.state.resources.map(({ name }) => name)).not.toContain('old/rke/converged');
    const before = authority(await copyOnOne());
    const kept = engine.state.resources.find(({ name }) => name === 'old/rke/up')?.outputs['stdout'];
    if (!(kept instanceof Secret && typeof kept.value === 'string'))
      throw new Error('the state of RKE is not kept as a secret');
    expect(decodeOutput(parseScriptResult(kept.value), 'state')).toContain(before);
    await expectNoSecrets(failure.message + failure.result.plainText());

    rke.control({});
    const result = await engine.up(program());
    expect(result.summary).toEqual(['create old/rke/converged']);
    expect(result.isSecret('kubeconfig')).toBe(true);
    expect(result.output('kubeconfig')).toContain(`https://${one.address}:6443`);
    expect(authority(await copyOnOne())).toBe(before);
    expect(rke.machines()).toEqual([one.address, two.address].sort());
    await expectNoSecrets(result.plainText());
  });

  test('then has nothing to do', async () => {
    const before = ups().length;
    expect((await engine.up(program())).summary).toEqual([]);
    expect(ups()).toHaveLength(before);
  });

  test('leaves a machine that shows another host key when it is to leave, until it was put back with that', async () => {
    const before = ups().length;
    await two.changeHostKey();
    const failure = await engine.up(program({ nodes: [node(one)] })).catch((error: unknown) => error);
    if (!(failure instanceof DeploymentError)) throw new Error('it did not fail', { cause: failure });
    expect(failure.message).toContain(`another host key than the one that is known is shown by ${two.address}`);
    expect(failure.message).toContain('put it back among the nodes with its new key');
    await expectNoSecrets(failure.message + failure.result.plainText());
    expect(ups()).toHaveLength(before);
    expect((await engine.up(program())).summary).toContain('update old/rke/up');
    expect(rke.machines()).toEqual([one.address, two.address].sort());
  });

  test('takes a machine out, with the state that lies on the others', async () => {
    const result = await engine.up(program({ nodes: [node(one)] }));
    expect(result.summary).toEqual([
      `delete old/${two.address}/preflight`,
      'update old/rke/converged',
      'update old/rke/up',
      'update old/rke/up/removal',
    ]);
    expect(rke.machines()).toEqual([one.address]);
    await expectNoSecrets(result.plainText());
  });

  test('is removed once it is unprotected', async () => {
    await expect(engine.destroy()).rejects.toThrow(/protect/);
    await engine.up(program({ nodes: [node(one)], protect: false }));
    const before = authority(await copyOnOne());
    const result = await engine.destroy();
    expect(rke.calls().at(-1)?.argv).toEqual(['remove', '--force', '--config', '../cluster.yml']);
    expect(rke.machines()).toEqual([]);
    expect(engine.state.resources).toEqual([]);
    await expect(one.exec('ls -A /home/admin/.kindred')).rejects.toThrow(/No such file/);
    expect(result.plainText()).not.toContain(before);
  });
});
