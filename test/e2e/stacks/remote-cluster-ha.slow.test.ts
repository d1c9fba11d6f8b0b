import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster, type NodeArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { FAKE_INSTALLER, buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { Engine, commandProvider, type Result } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

jest.setTimeout(300_000);

/** In front of all servers, for those that live with them. */
const FIXED_NAME = 'k8s.test.example';

describeOnHosts('RemoteCluster with three servers of RKE2', () => {
  let hosts: Hosts;
  let servers: readonly TestHost[];
  let engine: Engine;

  beforeAll(async () => {
    const parts = await buildFakeDistributions(temporaryFolder('kindred-stand-in-'));
    hosts = await startHosts({ names: ['s1', 's2', 's3'], mounts: parts.mounts });
    servers = hosts.all;
    const [first] = servers;
    const keys = await first!.exec('cat /etc/ssh/keys/authorized');
    await Promise.all(
      servers.map(async (host) => {
        await parts.setUp(host);
        await host.exec(`echo '${first!.address} ${FIXED_NAME}' >>/etc/hosts`);
        if (host !== first) await host.exec('cat >>/etc/ssh/keys/authorized', keys);
      }),
    );
    engine = new Engine({ providers: [commandProvider()] });
  }, 120_000);
  afterAll(() => hosts.end());

  const node = ({ address, hostKey }: TestHost): NodeArgs => ({
    ...{ address, hostKey, user: 'root', roles: ['controlplane', 'etcd', 'worker'] },
  });

  const program = (version: string, isProtected: boolean) => () => {
    const cluster = new RemoteCluster('prod', {
      ...{ distribution: 'rke2', version, installer: { path: FAKE_INSTALLER }, protect: isProtected },
      nodes: servers.map(node),
      sshKey: pulumi.secret(servers[0]!.privateKey),
      options: { registrationAddress: FIXED_NAME },
    });
    return { kubeconfig: cluster.kubeconfig };
  };

  /** The nodes and their versions, asked with the kubeconfig that came back, from where the fixed name leads somewhere. */
  async function nodesOf(result: Result): Promise<readonly string[]> {
    const kubeconfig = result.output('kubeconfig');
    if (typeof kubeconfig !== 'string' || !result.isSecret('kubeconfig')) throw new Error('no secret kubeconfig');
    expect(kubeconfig.includes(`https://${FIXED_NAME}:6443`)).toBe(true);
    const asked = `umask 077; cat >/run/kubeconfig
/var/lib/rancher/rke2/bin/kubectl --kubeconfig /run/kubeconfig get nodes -o \\
  'jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion} {.spec.unschedulable}{"\\n"}{end}'
rm /run/kubeconfig`;
    const lines = (await servers[1]!.exec(asked, kubeconfig)).trim().split('\n');
    return lines.map((line) => line.trim());
  }

  async function etcdMembers(): Promise<readonly string[]> {
    const text = await servers[2]!.exec('curl -sS -d "{}" http://127.0.0.1:2379/v3/cluster/member/list');
    const { members } = JSON.parse(text) as { members: { name: string; isLearner?: boolean }[] };
    return members.map(({ name, isLearner }) => (isLearner === true ? `${name} (learner)` : name)).sort();
  }

  test('comes up behind a fixed address, and a second up has nothing to do', async () => {
    const made = await engine.up(program('v1.34.1+rke2r1', true));
    expect(await nodesOf(made)).toEqual(['s1', 's2', 's3'].map((name) => `${name} v1.34.1+rke2r1`));
    expect(await etcdMembers()).toEqual(['s1', 's2', 's3']);
    expect((await engine.up(program('v1.34.1+rke2r1', true))).summary).toEqual([]);
  });

  test('is upgraded one server after the other', async () => {
    const made = await engine.up(program('v1.34.2+rke2r1', true));
    expect(await nodesOf(made)).toEqual(['s1', 's2', 's3'].map((name) => `${name} v1.34.2+rke2r1`));
    const installed = made.operations.filter(({ name }) => name.endsWith('/install')).map(({ name }) => name);
    expect(installed).toEqual(servers.map(({ address }) => `prod/${address}/install`));
  });

  test('goes once it is unprotected, and leaves nothing running', async () => {
    await expect(engine.destroy()).rejects.toThrow('protect');
    await engine.up(program('v1.34.2+rke2r1', false));
    await engine.destroy();
    for (const host of servers) {
      expect(await host.exec('ls /usr/local/bin/rke2 2>/dev/null || true')).toBe('');
      expect(await host.exec('pgrep -a "etcd|kube-" || true')).toBe('');
    }
  });
});
