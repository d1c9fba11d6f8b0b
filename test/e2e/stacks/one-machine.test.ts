import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster } from '../../../stacks/remote-cluster/remote-cluster';
import { FAKE_INSTALLER, buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { Engine, commandProvider } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

// Several machines, changes and interruptions are in remote-cluster.slow.test.ts.
jest.setTimeout(200_000);

describeOnHosts('RemoteCluster on one machine', () => {
  let hosts: Hosts;
  let host: TestHost;

  beforeAll(async () => {
    const parts = await buildFakeDistributions(temporaryFolder('kindred-stand-in-'));
    hosts = await startHosts({ names: ['one'], mounts: parts.mounts });
    host = hosts.get('one');
    await parts.setUp(host);
  }, 120_000);
  afterAll(() => hosts.end());

  test('makes a cluster, has nothing to do in a second run, and takes it away; no secret stands in the clear', async () => {
    const engine = new Engine({ providers: [commandProvider()] });
    const program = () => {
      const { address, hostKey, privateKey } = host;
      const cluster = new RemoteCluster('prod', {
        ...{ distribution: 'k3s', version: 'v1.34.1+k3s1', installer: { path: FAKE_INSTALLER }, protect: false },
        nodes: [{ address, hostKey, user: 'root', roles: ['controlplane', 'etcd', 'worker'] }],
        sshKey: pulumi.secret(privateKey),
      });
      return { kubeconfig: cluster.kubeconfig };
    };
    const made = await engine.up(program);
    expect(made.output('kubeconfig')).toContain(`https://${host.address}:6443`);
    expect((await engine.up(program)).summary).toEqual([]);
    const token = (await host.exec('cat /var/lib/kindred/prod/token')).trim();
    for (const secret of [host.privateKey.split('\n')[2]!, token, made.output('kubeconfig') as string]) {
      expect(secret.length).toBeGreaterThan(16);
      expect(made.plainText()).not.toContain(secret);
      expect(made.plainText()).not.toContain(Buffer.from(secret).toString('base64'));
    }
    await engine.destroy();
    expect(await host.exec('ls -d /usr/local/bin/k3s /etc/rancher/k3s 2>/dev/null || echo nothing')).toBe('nothing\n');
  });
});
