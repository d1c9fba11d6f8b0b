import { owned } from '../../../constructs/kube/resource-type';
import type { Hosts } from '../../support/hosts';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';
import {
  Cluster,
  K3sMachines,
  Kubeconfig,
  ProvisionerTestEnv,
  STATE_NAMESPACE,
  nodeSpec,
} from '../../support/provisioner-env';
import { conditionStatus, findCondition } from '../../support/assertions';

// The gate keeps a Cluster on one machine: one-machine.test.ts.
jest.setTimeout(200_000);

describeOnHosts('a Cluster of K3s', () => {
  const world = new ProvisionerTestEnv();
  let machines: K3sMachines;
  let hosts: Hosts;

  const spec = (names: readonly string[]) => ({
    ...machines.spec,
    nodes: names.map((name) =>
      name === 's1' ? nodeSpec(hosts.get(name), 'controlplane', 'etcd') : nodeSpec(hosts.get(name), 'worker'),
    ),
  });

  beforeAll(async () => {
    machines = await K3sMachines.start(world, ['s1', 'a1', 'a2']);
    ({ hosts } = machines);
  }, 120_000);
  afterAll(() => machines.end());

  test('comes up on bare machines, and so does its Kubeconfig', async () => {
    await world.env.createOfKind(Cluster, { name: 'edge' }, spec(['s1', 'a1']));
    const cluster = await world.waitUntilReady(Cluster, 'edge');
    expect(conditionStatus(cluster, 'Provisioned')).toBe('True');
    expect(findCondition(cluster, 'Ready')?.lastUpdateTime).toMatch(/Z$/);
    expect(cluster.status).toMatchObject({
      attempts: 1,
      kubeconfigRef: { namespace: STATE_NAMESPACE, name: 'edge-kubeconfig', key: 'kubeconfig' },
      nodes: [
        { address: hosts.get('s1').address, state: 'Ready', version: 'v1.34.1+k3s1' },
        { address: hosts.get('a1').address, state: 'Ready' },
      ],
    });
    const kubeconfig = await world.waitUntilReady(Kubeconfig, 'edge');
    expect(kubeconfig.status).toMatchObject({
      server: `https://${hosts.get('s1').address}:6443`,
      kubernetesVersion: expect.stringMatching(/^v1\./) as string,
    });
    await world.env.eventually('an event of its end', async () => {
      const args = ['get', 'events', '-n', 'default', '--field-selector=involvedObject.name=edge,reason=Provisioned'];
      const { stdout } = await world.env.kubectl([...args, '-o', 'name']);
      return stdout === '' ? undefined : stdout;
    });
  });

  test('a restart does nothing', async () => {
    await world.env.operator.stop();
    const before = (await world.env.auditLog()).writes().length;
    const marker = await hosts.get('s1').exec('ls -l --time-style=full-iso /var/lib/kindred/edge');
    await world.start();
    await world.waitUntilReady(Kubeconfig, 'edge');
    await world.waitForReconciles(Kubeconfig, 2);
    const writes = (await world.env.auditLog()).writes().slice(before);
    expect(writes.filter((write) => !write.includes(' events'))).toEqual([]);
    expect(await hosts.get('s1').exec('ls -l --time-style=full-iso /var/lib/kindred/edge')).toBe(marker);
  });

  test('goes on after it was killed in the middle of a change', async () => {
    await world.env.patchSpec(Cluster, { name: 'edge' }, { nodes: spec(['s1', 'a1', 'a2']).nodes });
    await world.waitUntil(Cluster, 'edge', 'a2 under way', ({ status }) =>
      (status as { nodes: { address: string; state: string }[] }).nodes.some(
        ({ address, state }) => address === hosts.get('a2').address && state === 'Provisioning',
      ),
    );
    await world.env.operator.kill();
    await world.start();
    const cluster = await world.waitUntilReady(Cluster, 'edge');
    expect((cluster.status as { nodes: unknown[] }).nodes).toHaveLength(3);
  });

  test('a node that leaves the spec is drained and cleaned', async () => {
    await world.env.patchSpec(Cluster, { name: 'edge' }, { nodes: spec(['s1', 'a2']).nodes });
    await world.waitUntil(Cluster, 'edge', 'two nodes', (cluster) => {
      const { nodes, observedGeneration } = cluster.status as { nodes: unknown[]; observedGeneration: number };
      return (
        nodes.length === 2 &&
        observedGeneration === cluster.metadata.generation &&
        conditionStatus(cluster, 'Ready') === 'True'
      );
    });
    expect(await hosts.get('a1').exec('ls /usr/local/bin/k3s 2>/dev/null || true')).toBe('');
  });

  test('goes with all that it brought, its Secrets too', async () => {
    await world.env.client.delete(Cluster.type, { name: 'edge' });
    await world.waitUntilGone(Cluster.type, 'edge');
    await world.waitUntilGone(Kubeconfig.type, 'edge');
    for (const name of ['edge-state', 'edge-kubeconfig']) {
      await world.env.waitUntilGone(owned.Secret, { namespace: STATE_NAMESPACE, name });
    }
    for (const host of hosts.all) expect(await host.exec('pgrep -a k3s || true')).toBe('');
  });

  test('asked for no more than it may', async () => {
    const audit = await world.env.auditLog();
    expect(audit.refusals()).toEqual([]);
  });

  test('showed no secret', async () => {
    expect(await machines.secretsShown(world)).toEqual([]);
  });
});
