import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { owned } from '../../../constructs/kube/resource-type';
import { startHosts, type Hosts } from '../../support/hosts';
import { recordProcesses, encodingsOf } from '../../support/hosts/leaks';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';
import {
  Cluster,
  Kubeconfig,
  ProvisionerTestEnv,
  FakeRke,
  STATE_NAMESPACE,
  clusterYml,
  installFakeDocker,
  lazyRecording,
  shareSshKey,
  rkeSpec,
} from '../../support/provisioner-env';
import { conditionStatus, findCondition } from '../../support/assertions';

interface ClusterStatus {
  readonly attempts?: number;
  readonly nodes?: readonly { readonly address: string; readonly state: string }[];
  readonly appliedConfig?: { readonly text: string; readonly sha256: string };
}

describeOnHosts('a Cluster of RKE', () => {
  const world = new ProvisionerTestEnv();
  const rke = new FakeRke(world);
  const sshKeySecretRef = { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' };
  /** Of this process alone: RKE's folders for runs are this machine's. */
  const names = (name: string): string => `${name}-${String(process.pid)}`;
  let hosts: Hosts;
  let seen: ReturnType<typeof lazyRecording>;
  let key: string;
  /** Every provisioner's log. */
  const logs: string[] = [];

  const address = (name: string): string => hosts.get(name).address;
  const status = async (name: string): Promise<ClusterStatus> =>
    (await world.env.get(Cluster.type, { name })).status as ClusterStatus;

  async function restart(args: readonly string[] = []): Promise<void> {
    logs.push(JSON.stringify(world.env.operator.log.all));
    await world.start(args);
  }

  beforeAll(async () => {
    hosts = await startHosts({ names: ['n1', 'n2', 'n3'] });
    await installFakeDocker(hosts.all);
    key = await shareSshKey(hosts);
    rke.install();
    await world.secret('ssh', { 'ssh-privatekey': key });
    seen = lazyRecording(await recordProcesses());
    await world.start(['--runs=1']);
  }, 120_000);
  // Nothing may stand still longer than its test, were it to fail.
  afterEach(() => rke.resume());
  afterAll(async () => {
    await seen.now();
    await hosts.end();
  });

  test('of typed nodes comes up by rke up, and its API answers', async () => {
    await world.env.createOfKind(Cluster, { name: names('typed') }, rkeSpec(hosts, ['n1', 'n2']));
    const cluster = await world.waitUntilReady(Cluster, names('typed'));
    expect(cluster.status).toMatchObject({
      attempts: 1,
      nodes: [
        { address: address('n1'), state: 'Ready' },
        { address: address('n2'), state: 'Ready' },
      ],
    });
    await world.waitUntilReady(Kubeconfig, names('typed'));
    expect([rke.count('init'), rke.count('up')]).toEqual([1, 1]);
    expect(rke.standIn.machines()).toEqual([address('n1'), address('n2')].sort());
  });

  test('is not run again by a restart, and nothing is written', async () => {
    await world.env.operator.stop();
    const before = (await world.env.auditLog()).writes().length;
    await restart(['--runs=1']);
    await world.waitForReconciles(Cluster, 1);
    await world.waitForReconciles(Kubeconfig, 2);
    const writes = (await world.env.auditLog()).writes().slice(before);
    expect(writes.filter((write) => !write.includes(' events'))).toEqual([]);
    expect(rke.count('up')).toBe(1);
  });

  test('fails halfway, keeps its state all the same, and goes on with it', async () => {
    rke.control({ fail: 'after-nodes', nodes: 1 });
    await world.env.patchSpec(Cluster, { name: names('typed') }, { nodes: rkeSpec(hosts, ['n1', 'n3']).nodes });
    const failed = await world.waitUntil(Cluster, names('typed'), 'failed', (object) => {
      return findCondition(object, 'Ready')?.reason === 'RkeFailed';
    });
    expect(findCondition(failed, 'Ready')?.message).toMatch(/Failed to bring up Worker Plane.*attempt 1 of 5 failed/s);
    expect(conditionStatus(failed, 'Provisioned')).toBe('False');
    const [up] = (
      JSON.parse((await world.values(`${names('typed')}-state`))['value.tasks'] ?? '') as StoredTask[]
    ).filter(({ task }) => task.id === 'rke/up');
    const state = JSON.parse(Buffer.from(up?.outputs['state'] ?? '', 'base64').toString()) as RkeState;
    expect(state.desiredState.rkeConfig.nodes.map((each) => each.address)).toEqual([address('n1'), address('n3')]);
    const cluster = await world.waitUntilReady(Cluster, names('typed'));
    expect(cluster.status).toMatchObject({ attempts: 2 });
    // A machine that is set up with another authority refuses it: see the stand-in.
    expect(rke.standIn.machines()).toEqual([address('n1'), address('n3')].sort());
    expect(rke.count('up')).toBe(3);
  });

  test('is taken down by rke remove, with its Secrets', async () => {
    await world.env.client.delete(Cluster.type, { name: names('typed') });
    await world.waitUntilGone(Cluster.type, names('typed'));
    const removals = rke.standIn.calls().filter(({ argv }) => argv[0] === 'remove');
    expect(removals.map(({ argv }) => argv)).toEqual([['remove', '--force', '--config', '../cluster.yml']]);
    expect(rke.standIn.machines()).toEqual([]);
    for (const name of [`${names('typed')}-state`, `${names('typed')}-kubeconfig`]) {
      await world.env.waitUntilGone(owned.Secret, { namespace: STATE_NAMESPACE, name });
    }
  });

  test('of a file: another provisioner goes on when one was killed in the middle', async () => {
    const folder = join(world.configDir, 'config');
    mkdirSync(folder);
    writeFileSync(join(folder, 'id_rke'), key);
    writeFileSync(join(folder, 'cluster.yml'), clusterYml(hosts.get('n1'), 'ssh_key_path: id_rke\n'));
    rke.pause();
    const configPath = join(folder, 'cluster.yml');
    await world.env.createOfKind(Cluster, { name: names('of-a-file') }, { configPath });
    await rke.waitUntilPaused();
    const first = world.env.operator;
    const second = await world.launch();
    await first.kill();
    rke.killOrphans(names('of-a-file'));
    rke.resume();
    await second.waitUntilReconciling();
    logs.push(JSON.stringify(first.log.all));
    const cluster = await world.waitUntilReady(Cluster, names('of-a-file'));
    expect(cluster.status).toMatchObject({ attempts: 2, nodes: [{ address: address('n1'), state: 'Ready' }] });
    await world.waitUntilReady(Kubeconfig, names('of-a-file'));
    expect(rke.standIn.machines()).toEqual([address('n1')]);
  });

  test('of a file that is gone is taken down all the same, in the foreground and by another provisioner', async () => {
    writeFileSync(join(world.configDir, 'config', 'cluster.yml'), '');
    await world.env.operator.stop();
    await world.env.client.delete(Cluster.type, { name: names('of-a-file') }, { propagation: 'Foreground' });
    const state = { namespace: STATE_NAMESPACE, name: `${names('of-a-file')}-state` };
    // The garbage collector does not wait for the Cluster's finalizer.
    await world.env.eventually('the deletion of its state', async () => {
      return (await world.env.get(owned.Secret, state)).metadata.deletionTimestamp;
    });
    await restart(['--runs=1']);
    await world.waitUntilGone(Cluster.type, names('of-a-file'));
    expect(rke.standIn.machines()).toEqual([]);
    await world.env.waitUntilGone(owned.Secret, state);
  });

  test('of a Secret: a stop lets the step under way end, and starts no other', async () => {
    await world.secret('cluster', { yml: clusterYml(hosts.get('n2')) });
    const configSecretRef = { namespace: 'machines', name: 'cluster', key: 'yml' };
    const ups = rke.count('up');
    rke.pause();
    await world.env.createOfKind(Cluster, { name: names('of-a-secret') }, { configSecretRef, sshKeySecretRef });
    await rke.waitUntilPaused();
    await world.env.createOfKind(
      Cluster,
      { name: names('waits') },
      { configSecretRef, sshKeySecretRef, deletionPolicy: 'Retain' },
    );
    await world.waitUntil(Cluster, names('waits'), 'its turn', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').includes('other objects go first'),
    );
    const stop = world.env.operator.stop();
    await world.env.operator.log.line('shutting down');
    rke.resume();
    expect(await stop).toEqual({ code: 0, signal: null });
    expect(rke.count('up')).toBe(ups + 1);
    await world.env.client.delete(Cluster.type, { name: names('waits') });
    await restart();
    await world.waitUntilReady(Cluster, names('of-a-secret'));
    expect(await status(names('of-a-secret'))).toMatchObject({ attempts: 1 });
    await world.waitUntilGone(Cluster.type, names('waits'));
    expect(rke.count('up')).toBe(ups + 1);
  });

  test('that is retained leaves its machines alone, and its Secrets without an owner', async () => {
    const removals = rke.count('remove');
    await world.env.patchSpec(Cluster, { name: names('of-a-secret') }, { deletionPolicy: 'Retain' });
    await world.env.client.delete(Cluster.type, { name: names('of-a-secret') });
    await world.waitUntilGone(Cluster.type, names('of-a-secret'));
    for (const name of [`${names('of-a-secret')}-state`, `${names('of-a-secret')}-kubeconfig`]) {
      const { metadata } = await world.env.get(owned.Secret, { namespace: STATE_NAMESPACE, name });
      expect(metadata.ownerReferences ?? []).toEqual([]);
      expect(metadata.finalizers ?? []).toEqual([]);
    }
    expect(rke.count('remove')).toBe(removals);
    expect(rke.standIn.machines()).toEqual([address('n2')]);
  });

  test('stalls after so many attempts, is left alone then, and tried again when a person says so', async () => {
    rke.control({ fail: 'before-state', always: true });
    const inits = rke.count('init');
    await world.env.createOfKind(Cluster, { name: names('stalls') }, { ...rkeSpec(hosts, ['n3']), maxAttempts: 2 });
    const stalled = await world.waitUntilStalled(Cluster, names('stalls'));
    expect(findCondition(stalled, 'Ready')?.message).toMatch(/unsupported Kubernetes version.*2 of 2 attempts failed/s);
    expect(stalled.status).toMatchObject({ attempts: 2 });
    expect(rke.count('init') - inits).toBe(2);
    await world.env.operator.stop();
    await restart();
    await world.waitForReconciles(Cluster, 1);
    expect(rke.count('init') - inits).toBe(2);
    rke.control();
    await world.annotate(Cluster, names('stalls'), { 'kindred.dev/reconcile-at': 'now' });
    await world.waitUntilReady(Cluster, names('stalls'));
    expect(rke.count('init') - inits).toBe(3);
  });

  test('that cannot be removed stalls, and a person lets it go', async () => {
    rke.control({ fail: 'after-nodes', always: true });
    const removals = rke.count('remove');
    await world.env.client.delete(Cluster.type, { name: names('stalls') });
    const stalled = await world.waitUntilStalled(Cluster, names('stalls'));
    expect(findCondition(stalled, 'Ready')).toMatchObject({
      reason: 'RkeFailed',
      message: expect.stringContaining('kindred.dev/force-remove') as string,
    });
    expect(rke.count('remove') - removals).toBe(2);
    await world.annotate(Cluster, names('stalls'), { 'kindred.dev/force-remove': 'true' });
    await world.waitUntilGone(Cluster.type, names('stalls'));
    expect(rke.count('remove') - removals).toBe(2);
  });

  test('that is paused is not taken down when it is deleted, by another provisioner either, until it is unpaused', async () => {
    rke.control();
    const removals = rke.count('remove');
    const name = names('paused');
    await world.env.createOfKind(Cluster, { name }, rkeSpec(hosts, ['n1']));
    await world.waitUntilReady(Cluster, name);
    await world.annotate(Cluster, name, { 'kindred.dev/paused': 'true' });
    await world.env.client.delete(Cluster.type, { name });
    await world.waitUntil(Cluster, name, 'told of', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').startsWith('The deletion is paused'),
    );
    await world.env.operator.stop();
    await restart();
    await world.waitForReconciles(Cluster, 1);
    expect(rke.count('remove')).toBe(removals);
    expect(rke.standIn.machines()).toContain(address('n1'));
    await world.env.patch(Cluster.type, { name }, { metadata: { annotations: { 'kindred.dev/paused': null } } });
    await world.waitUntilGone(Cluster.type, name);
    expect(rke.count('remove')).toBe(removals + 1);
  });

  test.each([
    ['at once', () => Promise.resolve(), () => Promise.resolve()],
    // The garbage collector has done its part by then, so that the Cluster itself does not tell any more.
    ['after it was away', () => world.env.operator.stop(), () => restart()],
  ])(
    'that is deleted with --cascade=orphan goes, its machines and Secrets stay: seen %s',
    async (when, before, after) => {
      const removals = rke.count('remove');
      const name = names(when.replaceAll(' ', '-'));
      await world.env.createOfKind(Cluster, { name }, rkeSpec(hosts, ['n1']));
      await world.waitUntilReady(Cluster, name);
      await world.waitUntilReady(Kubeconfig, name);
      await before();
      await world.env.client.delete(Cluster.type, { name }, { propagation: 'Orphan' });
      await world.env.eventually('the end of the orphaning', async () => {
        const { finalizers = [] } = (await world.env.client.get(Cluster.type, { name }))?.metadata ?? {};
        return finalizers.includes('orphan') ? undefined : true;
      });
      await after();
      await world.waitUntilGone(Cluster.type, name);
      for (const secret of [`${name}-state`, `${name}-kubeconfig`]) {
        const { metadata } = await world.env.get(owned.Secret, { namespace: STATE_NAMESPACE, name: secret });
        expect([metadata.ownerReferences ?? [], metadata.finalizers ?? [], metadata.deletionTimestamp]).toEqual([
          [],
          [],
          undefined,
        ]);
      }
      await world.waitUntilReady(Kubeconfig, name);
      expect(rke.count('remove')).toBe(removals);
      expect(rke.standIn.machines()).toContain(address('n1'));
      // A person cleans it up: it would let no other cluster in.
      rmSync(join(rke.standIn.folder, 'machines', address('n1')));
    },
  );

  test('asked for no more than it may', async () => {
    expect((await world.env.auditLog()).refusals()).toEqual([]);
  });

  test('showed no secret', async () => {
    const calls = JSON.stringify(rke.standIn.calls());
    const all = [await seen.now(), calls, ...logs, JSON.stringify(world.env.operator.log.all)].join('\n');
    const events = (await world.env.kubectl(['get', 'events', '-A', '-o', 'json'])).stdout;
    const texts = encodingsOf(key.split('\n')[3] ?? key);
    expect(texts.filter((text) => `${all}${events}`.includes(text))).toEqual([]);
  });
});

interface StoredTask {
  readonly task: { readonly id: string };
  readonly outputs: Readonly<Record<string, string>>;
}

interface RkeState {
  readonly desiredState: { readonly rkeConfig: { readonly nodes: readonly { readonly address: string }[] } };
}
