import { owned } from '../../../constructs/kube/resource-type';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';
import { Cluster, K3sMachines, Kubeconfig, ProvisionerWorld, STATE, node } from '../../support/provisioner-env';

// Several machines, changes and interruptions are in k3s.slow.test.ts.
jest.setTimeout(200_000);

describeOnHosts('a Cluster of K3s on one machine', () => {
  const world = new ProvisionerWorld();
  let machines: K3sMachines;

  beforeAll(async () => {
    machines = await K3sMachines.start(world, ['s1']);
  }, 120_000);
  afterAll(() => machines.end());

  test('comes up, and so does its Kubeconfig', async () => {
    const host = machines.hosts.get('s1');
    const nodes = [node(host, 'controlplane', 'etcd')];
    await world.bench.make(Cluster, { name: 'edge' }, { ...machines.spec, nodes });
    expect((await world.ready(Cluster, 'edge')).status).toMatchObject({
      attempts: 1,
      kubeconfigRef: { namespace: STATE, name: 'edge-kubeconfig', key: 'kubeconfig' },
      nodes: [{ address: host.address, state: 'Ready', version: 'v1.34.1+k3s1' }],
    });
    expect((await world.ready(Kubeconfig, 'edge')).status).toMatchObject({
      server: `https://${host.address}:6443`,
    });
  });

  test('goes with all that it brought, its Secrets too; nothing was refused, and no secret was shown', async () => {
    await world.bench.client.delete(Cluster.type, { name: 'edge' });
    await world.gone(Cluster.type, 'edge');
    await world.gone(Kubeconfig.type, 'edge');
    for (const name of ['edge-state', 'edge-kubeconfig']) {
      await world.bench.gone(owned.Secret, { namespace: STATE, name });
    }
    expect(await machines.hosts.get('s1').exec('pgrep -a k3s || true')).toBe('');
    expect((await world.bench.audit()).refusals()).toEqual([]);
    expect(await machines.secretsShown(world)).toEqual([]);
  });
});
