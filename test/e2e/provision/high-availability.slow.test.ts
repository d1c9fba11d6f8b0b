import { kubectl } from '../../../testing/kubectl';
import { MachineError, type Transport } from '../../../provisioner/tasks/transport';
import { buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { findFilesContaining, recordProcesses, encodingsOf, type ProcessRecording } from '../../support/hosts/leaks';
import { temporaryFolder } from '../../support/temporary-folder';
import { TestCluster, type Wanted } from './cluster';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

// With the five minutes that a rollout may take, see below.
jest.setTimeout(600_000);
const folder = temporaryFolder('kindred-ha-');

const secrets: Record<string, string> = {
  'registry/username': 'canary-registry-user-7f1c',
  'registry/password': 'canary-"registry\\pass: 9d2e',
  's3/accessKey': 'canary-access-key-55ab',
  's3/secretKey': 'canary-secret-key-c01d',
};

describeOnHosts('a cluster of RKE2 with three servers', () => {
  let hosts: Hosts;
  let cluster: TestCluster;
  let recording: ProcessRecording;
  let plane: { adminKubeconfig: string; dataDir: string };

  beforeAll(async () => {
    const parts = await buildFakeDistributions(temporaryFolder('kindred-stand-ins-'));
    hosts = await startHosts({ names: ['s1', 's2', 's3', 'a1', 'a2', 'a3'], mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    cluster = new TestCluster(hosts, folder, 'prod', secrets);
    recording = await recordProcesses();
  });
  afterAll(() => hosts.end());

  function wanted(version: string, names: readonly string[]): Wanted {
    return {
      distribution: 'rke2',
      version,
      parts: names.map((name) => ({
        host: hosts.get(name),
        roles: name.startsWith('s') ? (['controlplane', 'etcd'] as const) : (['worker'] as const),
      })),
      options: {
        upgradeStrategy: { drain: { enabled: true, timeoutSeconds: 60 } },
        etcdSnapshots: {
          s3: {
            endpoint: 's3.example.com',
            bucket: 'backups',
            credentialsSecretRef: { namespace: 'machines', name: 's3' },
          },
        },
        registries: [
          { host: 'registry.example.com', credentialsSecretRef: { namespace: 'machines', name: 'registry' } },
        ],
      },
    };
  }

  const five = (): Wanted => wanted('v1.34.1+rke2r1', ['s1', 's2', 's3', 'a1', 'a2']);
  const changed = (): Wanted => wanted('v1.34.2+rke2r1', ['s1', 's2', 'a1', 'a3']);

  async function nodes(): Promise<readonly string[]> {
    const path =
      '{range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion} {.spec.unschedulable}{"\\n"}{end}';
    const { stdout, stderr } = await kubectl(plane, ['get', 'nodes', '-o', `jsonpath=${path}`]);
    expect(stderr).toBe('');
    return stdout
      .trim()
      .split('\n')
      .map((line) => line.trim())
      .sort();
  }

  async function etcdMembers(on: TestHost): Promise<readonly string[]> {
    const text = await on.exec('curl -sS -d "{}" http://127.0.0.1:2379/v3/cluster/member/list');
    const { members } = JSON.parse(text) as { members: { name: string; isLearner?: boolean }[] };
    return members.map(({ name, isLearner }) => (isLearner === true ? `${name} (learner)` : name)).sort();
  }

  /** The services' processes on all hosts. */
  async function services(): Promise<readonly string[]> {
    return Promise.all(hosts.all.map((host) => host.exec('pgrep -a "etcd|kube|kwok|node" || true')));
  }

  test('comes up from bare machines, and the kubeconfig that comes back works', async () => {
    const done = await cluster.carryOut(five());
    expect(done.errors).toEqual([]);
    expect(done.complete).toBe(true);
    plane = { adminKubeconfig: cluster.kubeconfig(five()), dataDir: folder };
    const version = 'v1.34.1+rke2r1';
    expect(await nodes()).toEqual(['a1', 'a2', 's1', 's2', 's3'].map((name) => `${name} ${version}`));
    expect(await etcdMembers(hosts.get('s2'))).toEqual(['s1', 's2', 's3']);
  });

  test('carried out again does nothing, whether or not it is remembered', async () => {
    const before = await services();
    expect((await cluster.carryOut(five())).ran).toEqual([]);
    cluster.records = [];
    const { complete, ran, changed } = await cluster.carryOut(five());
    expect({ complete, changed }).toEqual({ complete: true, changed: [] });
    expect(ran).toHaveLength(cluster.plan(five()).length);
    expect(await services()).toEqual(before);
  });

  test('secrets lie only in files that root alone may read', async () => {
    const token = await hosts.get('s1').exec('cat /var/lib/kindred/prod/token');
    expect(token).toMatch(/^[0-9a-f]{64}$/);
    secrets.token = token;
    const texts = Object.values(secrets).flatMap(encodingsOf);
    const found = (await Promise.all(hosts.all.map((host) => findFilesContaining(host, texts)))).flat();
    expect(found.filter(({ mode }) => mode !== '600')).toEqual([]);
    const config = '/etc/rancher/rke2';
    const expected = ['config.yaml.d/50-kindred.yaml', 'registries.yaml'].map((name) => `${config}/${name}`);
    const data = ['/var/lib/kindred/prod/token', '/var/lib/rancher/rke2/server/token'];
    expect([...new Set(found.map(({ path }) => path))].sort()).toEqual([...expected, ...data].sort());
  });

  test('a new version, a node less, a server less, a node more', async () => {
    const deployed = await kubectl(plane, ['create', 'deployment', 'web', '--image=example.com/web:1', '--replicas=6']);
    expect(deployed.stderr).toBe('');
    await kubectl(plane, ['rollout', 'status', 'deployment/web', '--timeout=120s']);
    cluster.events.length = 0;
    const done = await cluster.carryOut(changed());
    expect(done.errors).toEqual([]);
    const version = 'v1.34.2+rke2r1';
    expect(await nodes()).toEqual(['a1', 'a3', 's1', 's2'].map((name) => `${name} ${version}`));
    expect(await etcdMembers(hosts.get('s1'))).toEqual(['s1', 's2']);
    // Where a server went with a creation under way, ReplicaSets wait five minutes for that pod. Source: kubernetes, ExpectationsTimeout in
    // pkg/controller/controller_utils.go.
    const status = await kubectl(plane, ['rollout', 'status', 'deployment/web', '--timeout=360s']);
    // Its stderr tells why not.
    expect(status).toMatchObject({ stdout: expect.stringContaining('successfully rolled out') as string });

    const snapshots = await hosts.get('s1').exec('ls /var/lib/rancher/rke2/server/db/snapshots');
    expect(snapshots).toMatch(/^kindred-s1-\d+\n$/);
    const did = cluster.events.flatMap(({ task, action, phase, changed: did }) => {
      const name = hosts.all.reduce((id, host) => id.replace(host.address, host.name), task.id);
      return phase === 'succeeded' && did === true ? [`${action} ${name}`] : [];
    });
    expect(did).toEqual([
      'apply snapshot',
      ...['s1', 's2', 'a1'].flatMap((name) => [`apply ${name}/drain`, `apply ${name}/install`, `apply ${name}/ready`]),
      ...['a3/install', 'a3/ready'].map((id) => `apply ${id}`),
      // A server that stays removes both from the cluster; their own removals find them gone.
      'apply members',
      ...([expect.anything(), expect.anything()] as string[]),
    ]);
    expect([...did.slice(-2)].sort()).toEqual(['remove a2/install', 'remove s3/install']);
    for (const gone of ['s3', 'a2']) expect(await leftovers(hosts.get(gone))).toBe('');
  });

  test.each([
    { what: 'another order', names: ['s2', 's1', 'a1', 'a3'], members: ['s1', 's2'] },
    { what: 'the server that began the cluster goes', names: ['s2', 'a1'], members: ['s2'] },
    { what: 'back to three servers', names: ['s2', 's1', 's3', 'a1'], members: ['s1', 's2', 's3'] },
    { what: 'of three servers the last one stays', names: ['s3', 'a1'], members: ['s3'] },
  ])('$what: whatever stays is never removed', async ({ names, members }) => {
    const next = wanted('v1.34.2+rke2r1', names);
    expect(await cluster.carryOut(next)).toMatchObject({ complete: true, errors: [] });
    plane = { adminKubeconfig: cluster.kubeconfig(next), dataDir: folder };
    expect(await nodes()).toEqual([...names].sort().map((name) => `${name} v1.34.2+rke2r1`));
    expect(await etcdMembers(hosts.get(names[0]!))).toEqual(members);
    for (const host of hosts.all) if (!names.includes(host.name)) expect(await leftovers(host)).toBe('');
    expect((await cluster.carryOut(next)).ran).toEqual([]);
  });

  test('a server that was removed, and not uninstalled, joins anew', async () => {
    const three = wanted('v1.34.2+rke2r1', ['s3', 's1', 's2', 'a1']);
    expect(await cluster.carryOut(three)).toMatchObject({ complete: true, errors: [] });
    const stop = new AbortController();
    const transport: Transport = {
      run: async (request) => {
        const result = await cluster.transport().run(request);
        if (request.script.startsWith('# members of')) stop.abort();
        return result;
      },
    };
    const one = wanted('v1.34.2+rke2r1', ['s3', 'a1']);
    expect(await cluster.carryOut(one, { transport, signal: stop.signal })).toMatchObject({
      complete: false,
      errors: [],
    });
    expect(await etcdMembers(hosts.get('s3'))).toEqual(['s3']);
    expect(await leftovers(hosts.get('s1'))).toContain('/usr/local/bin/rke2');
    expect(await cluster.carryOut(three)).toMatchObject({ complete: true, errors: [] });
    plane = { adminKubeconfig: cluster.kubeconfig(three), dataDir: folder };
    expect(await nodes()).toEqual(['a1', 's1', 's2', 's3'].map((name) => `${name} v1.34.2+rke2r1`));
    expect(await etcdMembers(hosts.get('s3'))).toEqual(['s1', 's2', 's3']);
  });

  test('a machine that is gone for good leaves through one that stays', async () => {
    const dead = hosts.get('s3');
    await dead.exec('systemctl stop rke2-server');
    const transport: Transport = {
      run: (request) =>
        request.machine?.address === dead.address
          ? Promise.reject(new MachineError('Unreachable', `${dead.address} cannot be reached`))
          : cluster.transport().run(request),
    };
    const without = wanted('v1.34.2+rke2r1', ['s1', 's2', 'a1']);
    const unreachable = await cluster.carryOut(without, { transport });
    expect(unreachable.errors.map(({ reason }) => reason)).toEqual(['Unreachable']);
    // It has left the cluster all the same: only its software could not be removed.
    plane = { adminKubeconfig: cluster.kubeconfig(without), dataDir: folder };
    expect(await etcdMembers(hosts.get('s1'))).toEqual(['s1', 's2']);
    cluster.events.length = 0;
    expect(await cluster.carryOut(without, { transport, lost: [dead] })).toMatchObject({ complete: true, errors: [] });
    const skipped = cluster.events.filter(({ phase }) => phase === 'skipped').map(({ task }) => task.id);
    expect(skipped).toContain(`${dead.address}/install`);
    expect(await nodes()).toEqual(['a1', 's1', 's2'].map((name) => `${name} v1.34.2+rke2r1`));
    await dead.exec('rke2-uninstall.sh; rm -rf /var/lib/kindred');
  });

  test('is taken away', async () => {
    const done = await cluster.carryOut(undefined);
    expect(done).toMatchObject({ complete: true, errors: [], records: [] });
    for (const host of hosts.all) expect(await leftovers(host)).toBe('');
  });

  test('no secret was in sight', async () => {
    const seen = await recording.stop();
    expect(seen).toContain('kube-apiserver');
    const told = JSON.stringify(cluster.events);
    const keys = hosts.all.map(({ privateKey }) => privateKey.split('\n')[2] ?? '');
    const all = [...Object.values(secrets), ...keys].flatMap(encodingsOf);
    expect(all.length).toBeGreaterThan(40);
    for (const spelling of all) for (const text of [seen, told]) expect(text).not.toContain(spelling);
  });

  async function leftovers(host: TestHost): Promise<string> {
    return host.exec(`pgrep -a "etcd|kube|kwok|node|sleep" || true
find /etc/rancher /var/lib/rancher /usr/local/bin/rke2* -type f 2>/dev/null || true
find /var/lib/kindred -type f ! -name 'lock*' 2>/dev/null || true`);
  }
});
