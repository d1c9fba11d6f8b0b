import { owned } from '../../../constructs/kube/resource-type';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';
import {
  Cluster,
  K3sMachines,
  Kubeconfig,
  ProvisionerTestEnv,
  STATE_NAMESPACE,
  nodeSpec,
} from '../../support/provisioner-env';

// Several machines, changes and interruptions are in k3s.slow.test.ts.
jest.setTimeout(200_000);

describeOnHosts('a Cluster of K3s on one machine', () => {
  const world = new ProvisionerTestEnv();
  let machines: K3sMachines;

  beforeAll(async () => {
    machines = await K3sMachines.start(world, ['s1']);
  }, 120_000);
  afterAll(() => machines.end());

  test('comes up, and so does its Kubeconfig', async () => {
    const host = machines.hosts.get('s1');
    const nodes = [nodeSpec(host, 'controlplane', 'etcd')];
    await world.env.createOfKind(Cluster, { name: 'edge' }, { ...machines.spec, nodes });
    expect((await world.waitUntilReady(Cluster, 'edge')).status).toMatchObject({
      attempts: 1,
      kubeconfigRef: { namespace: STATE_NAMESPACE, name: 'edge-kubeconfig', key: 'kubeconfig' },
      nodes: [{ address: host.address, state: 'Ready', version: 'v1.34.1+k3s1' }],
    });
    expect((await world.waitUntilReady(Kubeconfig, 'edge')).status).toMatchObject({
      server: `https://${host.address}:6443`,
    });
  });

  test('goes with all that it brought, its Secrets too; nothing was refused, and no secret was shown', async () => {
    await world.env.client.delete(Cluster.type, { name: 'edge' });
    await world.waitUntilGone(Cluster.type, 'edge');
    await world.waitUntilGone(Kubeconfig.type, 'edge');
    for (const name of ['edge-state', 'edge-kubeconfig']) {
      await world.env.waitUntilGone(owned.Secret, { namespace: STATE_NAMESPACE, name });
    }
    expect(await machines.hosts.get('s1').exec('pgrep -a k3s || true')).toBe('');
    expect((await world.env.auditLog()).refusals()).toEqual([]);
    expect(await machines.secretsShown(world)).toEqual([]);
  });
});
