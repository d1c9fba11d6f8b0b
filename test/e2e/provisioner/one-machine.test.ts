import { owned } from '../../../constructs/core/owned';
import { startHosts, standIns, type Hosts } from '../../support/hosts';
import { recordProcesses } from '../../support/hosts/process-recorder';
import { temporaryFolder } from '../../support/temporary-folder';
import { spellings } from '../provision/canaries';
import { describeOnHosts } from '../provision/on-hosts';
import { Cluster, INSTALLER, Kubeconfig, ProvisionerWorld, STATE, node, oneKey, once } from './world';

// Several machines, changes and interruptions are in k3s.slow.test.ts.
jest.setTimeout(200_000);

describeOnHosts('a Cluster of K3s on one machine', () => {
  const world = new ProvisionerWorld();
  let hosts: Hosts;
  let seen: ReturnType<typeof once>;
  let key: string;

  beforeAll(async () => {
    const parts = await standIns(temporaryFolder('kindred-stand-ins-'));
    hosts = await startHosts({ names: ['s1'], mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    key = await oneKey(hosts);
    await world.secret('ssh', { 'ssh-privatekey': key });
    seen = once(await recordProcesses());
    await world.start();
  }, 120_000);
  afterAll(async () => {
    await seen.now();
    await hosts.end();
  });

  test('comes up, and so does its Kubeconfig', async () => {
    await world.bench.make(
      Cluster,
      { name: 'edge' },
      {
        distribution: 'k3s',
        version: 'v1.34.1+k3s1',
        installer: { path: INSTALLER },
        sshKeySecretRef: { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' },
        nodes: [node(hosts.get('s1'), 'controlplane', 'etcd')],
      },
    );
    expect((await world.ready(Cluster, 'edge')).status).toMatchObject({
      attempts: 1,
      kubeconfigRef: { namespace: STATE, name: 'edge-kubeconfig', key: 'kubeconfig' },
      nodes: [{ address: hosts.get('s1').address, state: 'Ready', version: 'v1.34.1+k3s1' }],
    });
    expect((await world.ready(Kubeconfig, 'edge')).status).toMatchObject({
      server: `https://${hosts.get('s1').address}:6443`,
    });
  });

  test('goes with all that it brought, its Secrets too; nothing was refused, and no secret was shown', async () => {
    await world.bench.client.delete(Cluster.type, { name: 'edge' });
    await world.gone(Cluster.type, 'edge');
    await world.gone(Kubeconfig.type, 'edge');
    for (const name of ['edge-state', 'edge-kubeconfig']) {
      await world.bench.gone(owned.Secret, { namespace: STATE, name });
    }
    expect(await hosts.get('s1').exec('pgrep -a k3s || true')).toBe('');
    expect((await world.bench.audit()).refusals()).toEqual([]);
    const all = await seen.now();
    const logs = JSON.stringify(world.bench.operator.log.all);
    const texts = spellings(key.split('\n')[3] ?? key);
    expect(texts.filter((text) => all.includes(text) || logs.includes(text))).toEqual([]);
  });
});
