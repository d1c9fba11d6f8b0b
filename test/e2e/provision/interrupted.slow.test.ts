import { kubectl } from '../../../testing/kubectl';
import { buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { temporaryFolder } from '../../support/temporary-folder';
import type { ExecutePlanResult } from '../../../provisioner/tasks/execute-plan';
import { InterruptingTransport, TestCluster, type Wanted } from './cluster';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

jest.setTimeout(170_000);
const folder = temporaryFolder('kindred-k3s-');

describeOnHosts('a cluster of K3s that is disturbed', () => {
  let hosts: Hosts;
  let server: TestHost;
  let agent: TestHost;
  let cluster: TestCluster;

  beforeAll(async () => {
    const parts = await buildFakeDistributions(temporaryFolder('kindred-stand-ins-'));
    hosts = await startHosts({ names: ['server', 'agent'], mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    [server, agent] = [hosts.get('server'), hosts.get('agent')];
    cluster = new TestCluster(hosts, folder, 'edge');
  });
  afterAll(() => hosts.end());

  function wanted(version = 'v1.34.1+k3s1', more: Partial<Wanted> = {}): Wanted {
    const parts = [
      { host: server, roles: ['controlplane', 'etcd', 'worker'] as const },
      { host: agent, roles: ['worker'] as const },
    ];
    return { distribution: 'k3s', version, parts, ...more };
  }

  /** Carries out again and again, as a reconciler does. @returns the last time, and how many there were */
  async function persevere(
    act: () => Promise<ExecutePlanResult>,
    limit = 80,
  ): Promise<ExecutePlanResult & { rounds: number }> {
    for (let rounds = 1; ; rounds++) {
      const done = await act();
      if (done.complete) return { ...done, rounds };
      const others = done.errors.filter(({ reason }) => reason !== 'ConnectionLost' && reason !== 'Locked');
      if (others.length > 0 || rounds === limit) throw others[0] ?? new Error('it never came to an end');
    }
  }

  async function onlyError(done: Promise<ExecutePlanResult>): Promise<{ reason: string; message: string }> {
    const { complete, errors } = await done;
    expect(complete).toBe(false);
    expect(errors).toHaveLength(1);
    return { reason: errors[0]!.reason, message: errors[0]!.message };
  }

  const untouched = 'ls /usr/local/bin/k3s /etc/rancher/k3s 2>/dev/null || true';

  test('does nothing where a machine is not the one it is known as, or takes no key', async () => {
    const known = wanted();
    const plan = cluster.plan(known);
    await agent.changeHostKey();
    const strange = new TestCluster(hosts, folder, 'edge');
    strange.plan = () => plan;
    expect(await onlyError(strange.carryOut(known))).toMatchObject({ reason: 'HostKeyMismatch' });
    await server.refuseKey();
    const { errors } = await cluster.carryOut(wanted());
    expect(errors.map(({ reason }) => reason)).toContain('AuthenticationFailed');
    await server.acceptKey();
    for (const host of hosts.all) expect(await host.exec(untouched)).toBe('');
  });

  test('says so when a disk is full, and goes on when there is room', async () => {
    cluster.records = [];
    await server.exec('touch /etc/stand-in/hold-install');
    const filled = (async () => {
      await server.exec('until [ -e /etc/stand-in/held ]; do sleep 0.1; done');
      await server.fillDisk();
      await server.exec('touch /etc/stand-in/go'); // takes no room, and nothing may give any back
    })();
    const { reason, message } = await onlyError(cluster.carryOut(wanted()));
    await filled;
    await server.freeDisk();
    await server.exec('rm /etc/stand-in/hold-install');
    expect(reason).toBe('DiskFull');
    expect(message).toContain('make room on it');
  });

  test('says what the installer says', async () => {
    await server.exec('echo "[ERROR]  no such release" >/etc/stand-in/fail-install');
    const { reason, message } = await onlyError(cluster.carryOut(wanted()));
    expect({ reason, message }).toEqual({
      reason: 'InstallerFailed',
      message: expect.stringContaining('[ERROR]  no such release') as string,
    });
    await server.exec('rm /etc/stand-in/fail-install');
  });

  test('an installer that died in the middle is run again, though what it left looks installed', async () => {
    await server.exec('touch /etc/stand-in/die-halfway');
    const { reason } = await onlyError(cluster.carryOut(wanted()));
    expect(reason).toBe('InstallerFailed');
    expect(await server.exec('ls /usr/local/bin/k3s')).toBe('/usr/local/bin/k3s\n');
    await server.exec('rm /etc/stand-in/die-halfway');
    const done = await cluster.carryOut(wanted());
    expect(done.errors).toEqual([]);
    await cluster.carryOut(undefined);
  });

  test('cut, killed and unheard at every step, it comes up all the same', async () => {
    cluster.records = [];
    // Most scripts have ended when the last one comes, and their answers go unheard.
    const ways = ['cut', 'killed', 'killed-later'] as const;
    const transport = new InterruptingTransport(cluster.transport(), hosts, ways);
    const { records, rounds } = await persevere(() => cluster.carryOut(wanted(), { transport }));
    const plan = cluster.plan(wanted());
    expect(transport.interrupted).toHaveLength(ways.length * plan.length);
    expect(rounds).toBeGreaterThan(plan.length);
    expect(records.map(({ task }) => task.id).sort()).toEqual(plan.map(({ id }) => id).sort());

    const plane = { adminKubeconfig: cluster.kubeconfig(wanted()), dataDir: folder };
    const { stdout } = await kubectl(plane, ['get', 'nodes', '-o', 'name']);
    expect(stdout).toBe('node/agent\nnode/server\n');
    cluster.records = [];
    const again = await cluster.carryOut(wanted());
    expect({ complete: again.complete, changed: again.changed }).toEqual({ complete: true, changed: [] });
  });

  test('a node with another token does not get in', async () => {
    await agent.exec(`sed -i 's/^token: .*/token: "not-the-token-of-this-cluster-0000"/' /etc/rancher/k3s/config.yaml.d/50-kindred.yaml
systemctl restart --no-block k3s-agent
until journalctl -u k3s-agent -n 20 | grep -q 'not authorized'; do sleep 0.2; done
! systemctl is-active --quiet k3s-agent`);
    cluster.records = [];
    const { complete, changed } = await cluster.carryOut(wanted());
    expect({ complete, changed }).toEqual({ complete: true, changed: [`${agent.address}/install`] });
  });

  test('a version that cannot be installed is taken back, and no node stays cordoned', async () => {
    const plane = { adminKubeconfig: cluster.kubeconfig(wanted()), dataDir: folder };
    const cordoned = async (): Promise<string> =>
      (await kubectl(plane, ['get', 'nodes', '--field-selector', 'spec.unschedulable=true', '-o', 'name'])).stdout;
    await server.exec('echo "[ERROR]  no such release" >/etc/stand-in/fail-install');
    expect(await onlyError(cluster.carryOut(wanted('v1.34.9+k3s1')))).toMatchObject({ reason: 'InstallerFailed' });
    expect(await cordoned()).toBe('node/server\n');
    await server.exec('rm /etc/stand-in/fail-install');
    const { complete, changed } = await cluster.carryOut(wanted());
    // Nothing is installed or started again: the version that is there never stopped.
    expect({ complete, changed: changed.filter((id) => id !== 'snapshot') }).toEqual({
      complete: true,
      changed: [`${server.address}/drain`],
    });
    expect(await cordoned()).toBe('');
    expect((await cluster.carryOut(wanted())).ran).toEqual([]);
  });

  test('changes nothing when no snapshot can be taken', async () => {
    const version = 'v1.34.2+k3s1';
    await server.exec('touch /etc/stand-in/fail-snapshot');
    expect(await onlyError(cluster.carryOut(wanted(version)))).toMatchObject({ reason: 'SnapshotFailed' });
    expect(await server.exec('k3s --version')).toContain('v1.34.1+k3s1');
    await server.exec('rm /etc/stand-in/fail-snapshot');
  });

  test('is told to stop: the step under way ends, and no other starts', async () => {
    const abort = new AbortController();
    const running = cluster.carryOut(wanted('v1.34.2+k3s1'), { signal: abort.signal });
    abort.abort();
    const { complete, errors, ran } = await running;
    expect({ complete, errors }).toEqual({ complete: false, errors: [] });
    expect(ran.length).toBeLessThanOrEqual(4);
  });

  test('cut, killed and unheard at every step, it is taken away all the same', async () => {
    const transport = new InterruptingTransport(cluster.transport(), hosts, ['killed', 'unheard']);
    await persevere(() => cluster.carryOut(undefined, { transport }));
    expect(cluster.records).toEqual([]);
    for (const host of hosts.all) {
      expect(await host.exec(untouched)).toBe('');
      expect(await host.exec('pgrep -a "etcd|kube|kwok|node" || true')).toBe('');
    }
  });
});
