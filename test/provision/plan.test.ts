import { execFileSync } from 'node:child_process';
import { parse } from 'yaml';
import { clusterProblems } from '../../provision/cluster-problems';
import { clusterTasks, kubeconfigOutput } from '../../provision/plan';
import { externalSources, renderSource } from '../../provision/task/script-io';
import type { ClusterInput } from '../../provision/cluster/cluster-input';
import type { Task } from '../../provision/task/task';
import { HA_NODES, inputOf, node, type GivenInput } from './inputs';

const distributions = ['rke2', 'k3s'] as const;
const plan = (given: GivenInput): readonly Task[] => {
  const input = inputOf(given);
  expect(clusterProblems(input)).toEqual([]);
  return clusterTasks(input);
};
const byId = (tasks: readonly Task[], id: string): Task => {
  const task = tasks.find((one) => one.id === id);
  if (task === undefined) throw new Error(`no task ${id} among ${tasks.map((one) => one.id).join(' ')}`);
  return task;
};
const secrets = {
  credentialsSecretRef: { namespace: 'a', name: 'creds' },
  caSecretRef: { namespace: 'a', name: 'ca', key: 'ca' },
};
const full = {
  etcdSnapshots: { schedule: '@daily', s3: { endpoint: 's3.example.com', bucket: 'backups', ...secrets } },
  registries: [
    { host: 'r.example.com:5000', endpoints: ['https://mirror.example.com'], ...secrets },
    { host: 'plain.example.com' },
  ],
};
/** What a task's marker and Pulumi look at. */
const essence = (task: Task): string => JSON.stringify([task.machine, task.apply, task.remove, task.stdin]);
const changed = (before: readonly Task[], after: readonly Task[]): string[] =>
  after
    .filter((task) => {
      const old = before.find(({ id }) => id === task.id);
      return old === undefined || essence(old) !== essence(task);
    })
    .map(({ id }) => id);

/** Tasks that must have succeeded before a task. */
function before(tasks: readonly Task[], id: string): Set<string> {
  const found = new Set<string>();
  const add = (one: string): void => {
    for (const other of byId(tasks, one).after) {
      found.add(other);
      add(other);
    }
  };
  add(id);
  return found;
}

describe.each(distributions)('%s', (distribution) => {
  test('a plan of high availability, as data', () => {
    const tasks = plan({ distribution, options: full });
    expect(
      tasks.map(({ id, machine, after, stdin = [], outputs = [], remove }) =>
        [
          `${id} on ${machine?.address ?? ''}`,
          `after ${after.join(', ')}`,
          ...(stdin.length > 0 ? [`reads ${stdin.map(({ name }) => name).join(', ')}`] : []),
          ...(outputs.length > 0 ? [`gives ${outputs.join(', ')}`] : []),
          ...(remove === undefined ? [] : ['can be removed']),
        ].join('; '),
      ),
    ).toMatchSnapshot();
  });

  test.each(['preflight', 'token', 'install'])('the scripts of the first server: %s', (what) => {
    const task = byId(plan({ distribution, options: full }), `10.0.0.1/${what}`);
    expect(`${task.apply}\n# removal\n${task.remove ?? ''}`).toMatchSnapshot();
  });

  test.each(['drain', 'install', 'ready'])('the scripts of an agent: %s', (what) => {
    const options = { ...full, upgradeStrategy: { drain: { enabled: true } } };
    const task = byId(plan({ distribution, options }), `10.0.0.4/${what}`);
    expect(`${task.apply}\n# removal\n${task.remove ?? ''}`).toMatchSnapshot();
  });

  test('each task stands after those it needs; ids are unique', () => {
    const tasks = plan({ distribution, options: full });
    const ids = tasks.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    tasks.forEach(({ after }, i) => after.forEach((id) => expect(ids.slice(0, i)).toContain(id)));
    for (const task of tasks) {
      const leaves = (task.stdin ?? []).flatMap(({ from }) => externalSources(from));
      const needed = leaves.flatMap((leaf) => ('output' in leaf ? [leaf.output] : []));
      for (const { task: id, name } of needed) {
        expect(before(tasks, task.id)).toContain(id);
        expect(byId(tasks, id).outputs).toContain(name);
      }
    }
  });

  test('nothing is touched before all machines were looked at', () => {
    const tasks = plan({ distribution });
    const preflights = HA_NODES.map(({ address = '' }) => `${address}/preflight`);
    for (const { id } of tasks.filter((task) => !/preflight$/.test(task.id))) {
      expect([...before(tasks, id)]).toEqual(expect.arrayContaining(preflights));
    }
  });

  test('servers come one at a time and before agents', () => {
    const tasks = plan({ distribution });
    expect(before(tasks, '10.0.0.2/drain')).toContain('10.0.0.1/ready');
    expect(before(tasks, '10.0.0.3/drain')).toContain('10.0.0.2/ready');
    expect(before(tasks, '10.0.0.4/drain')).toContain('10.0.0.3/ready');
    expect(before(tasks, '10.0.0.5/drain')).toContain('10.0.0.4/ready');
    expect(before(tasks, '10.0.0.1/install')).toContain('snapshot');
  });

  test('workers at once, as many as wanted', () => {
    const agents = [4, 5, 6, 7, 8].map((n) => node(`10.0.0.${n}`, { roles: ['worker'] }));
    const options = { upgradeStrategy: { workerConcurrency: 2, controlPlaneConcurrency: 3 } };
    const tasks = plan({ distribution, nodes: [...HA_NODES.slice(0, 3), ...agents], options });
    expect(before(tasks, '10.0.0.5/drain')).not.toContain('10.0.0.4/drain');
    expect(before(tasks, '10.0.0.6/drain')).toContain('10.0.0.4/ready');
    expect(before(tasks, '10.0.0.6/drain')).not.toContain('10.0.0.5/ready');
    expect(before(tasks, '10.0.0.8/drain')).toContain('10.0.0.6/ready');
    // Members of etcd never.
    expect(before(tasks, '10.0.0.3/drain')).toContain('10.0.0.2/ready');
  });

  test('roles apart: etcd comes first, and is waited for once there is an API', () => {
    const nodes = [
      node('10.0.0.9', { roles: ['worker'] }),
      ...[1, 2, 3].map((n) => node(`10.0.0.${n}`, { roles: ['etcd'] })),
      ...[4, 5, 6, 7].map((n) => node(`10.0.0.${n}`, { roles: ['controlplane'] })),
    ];
    const options = { upgradeStrategy: { controlPlaneConcurrency: 2 } };
    const tasks = plan({ distribution, nodes, options });
    expect(byId(tasks, '10.0.0.1/token').machine?.address).toBe('10.0.0.1');
    expect(byId(tasks, '10.0.0.1/ready').machine?.address).toBe('10.0.0.4');
    expect(before(tasks, '10.0.0.4/install')).toContain('10.0.0.3/install');
    expect(before(tasks, '10.0.0.1/ready')).toContain('10.0.0.4/install');
    expect(before(tasks, '10.0.0.5/drain')).toContain('10.0.0.4/ready');
    // Two at once behind the first with an API.
    expect(before(tasks, '10.0.0.6/drain')).not.toContain('10.0.0.5/drain');
    expect(before(tasks, '10.0.0.7/drain')).toContain('10.0.0.5/ready');
    expect(before(tasks, '10.0.0.7/drain')).not.toContain('10.0.0.6/drain');
    const config = (id: string): unknown => configOf(byId(tasks, id));
    expect(config('10.0.0.1/install')).toMatchObject({
      'disable-apiserver': true,
      'disable-controller-manager': true,
      'disable-scheduler': true,
      'node-taint': ['node-role.kubernetes.io/etcd:NoExecute'],
    });
    expect(config('10.0.0.4/install')).toMatchObject({ 'disable-etcd': true });
    expect(config('10.0.0.4/install')).not.toHaveProperty('disable-apiserver');
    expect(config('10.0.0.9/install')).not.toHaveProperty('node-taint');
  });

  test('nodes that left the plan are removed by a server that stays, once all others are ready', () => {
    const tasks = plan({ distribution });
    for (const address of ['10.0.0.2', '10.0.0.3', '10.0.0.4']) {
      const task = byId(tasks, `${address}/ready`);
      expect([task.machine?.address, task.remove !== undefined]).toEqual(['10.0.0.1', true]);
      // Removed in the reverse order: the node leaves before it is uninstalled.
      expect(before(tasks, task.id)).toContain(`${address}/install`);
    }
    const members = byId(tasks, 'members');
    expect(members.machine?.address).toBe('10.0.0.1');
    const ready = tasks.filter(({ id }) => /[/](ready|member)$/.test(id)).map(({ id }) => id);
    expect([...before(tasks, 'members')]).toEqual(expect.arrayContaining(ready));
  });

  test('the kubeconfig is at the fixed address', () => {
    const input = inputOf({ distribution });
    const ref = kubeconfigOutput(input);
    expect(ref).toEqual({ task: 'kubeconfig', name: 'kubeconfig' });
    expect(byId(clusterTasks(input), ref.task).apply).toContain('https://api.example.com:6443');
    const alone = inputOf({ distribution, nodes: [node('2001:db8::1', { internalAddress: 'fd00::1' })], options: v6 });
    expect(byId(clusterTasks(alone), 'kubeconfig').apply).toContain('https://[2001:db8::1]:6443');
  });

  test('what the secret files are', () => {
    const stdin = byId(plan({ distribution, options: full }), '10.0.0.1/install').stdin ?? [];
    const text = (name: string): string => {
      const value = stdin.find((one) => one.name === name);
      return renderSource(value!.from, (leaf) =>
        'secret' in leaf ? `${leaf.secret.name}/${leaf.secret.key}` : 'token"',
      );
    };
    expect(parse(text('secret_config'))).toEqual({
      token: 'token"',
      'etcd-s3-access-key': 'creds/accessKey',
      'etcd-s3-secret-key': 'creds/secretKey',
    });
    const folder = `/etc/rancher/${distribution}`;
    expect(parse(text('registries'))).toEqual({
      mirrors: { 'r.example.com:5000': { endpoint: ['https://mirror.example.com'] } },
      configs: {
        'r.example.com:5000': {
          auth: { username: 'creds/username', password: 'creds/password' },
          tls: { ca_file: `${folder}/kindred-registry-ca-0.pem` },
        },
      },
    });
    const agent = byId(plan({ distribution, options: full }), '10.0.0.4/install').stdin ?? [];
    const names = agent.map(({ name }) => name).join(' ');
    expect(names).toBe('token secret_config registries registry_ca_0 node turn');
  });

  describe('one change changes only its tasks', () => {
    const from = (given: GivenInput, to: GivenInput): string[] =>
      changed(plan({ distribution, ...given }), plan({ distribution, ...to }));
    const last = (more: object): GivenInput => ({
      nodes: [...HA_NODES.slice(0, 4), node('10.0.0.5', { roles: ['worker'], ...more })],
    });

    test('nothing', () => expect(from({}, {})).toEqual([]));
    test('a label', () => {
      const ids = ['10.0.0.5/preflight', 'snapshot', '10.0.0.5/install', '10.0.0.5/ready'];
      expect(from({}, last({ labels: { a: 'b' } }))).toEqual(ids);
    });
    test('how to drain', () => {
      const ids = from({}, { options: { upgradeStrategy: { drain: { enabled: true } } } });
      expect(ids.filter((id) => !id.endsWith('/drain'))).toEqual([]);
      expect(ids).toHaveLength(5);
    });
    test('how many at once', () => {
      expect(from({}, { options: { upgradeStrategy: { workerConcurrency: 2 } } })).toEqual([]);
    });
    test('a user', () => {
      const ids = ['10.0.0.5/preflight', '10.0.0.5/install'];
      expect(from({}, last({ user: 'core' }))).toEqual(ids);
    });
    test('one agent more', () => {
      const nodes = [...HA_NODES, node('10.0.0.6', { roles: ['worker'] })];
      const own = ['drain', 'install', 'ready'].map((what) => `10.0.0.6/${what}`);
      expect(from({}, { nodes })).toEqual(['10.0.0.6/preflight', 'hostnames', 'snapshot', ...own, 'members']);
    });
    test('an agent in another place of the list', () => {
      const nodes = [HA_NODES[4]!, ...HA_NODES.slice(0, 4)];
      expect(from({}, { nodes })).toEqual(['hostnames']);
    });
    test('an option of servers', () => {
      const ids = from({}, { options: { tlsSans: ['other.example.com'] } });
      expect(ids.filter((id) => /10[.]0[.]0[.][45]/.test(id))).toEqual([]);
      expect(ids).toHaveLength(1 + 4 * 3);
    });
    test('the version', () => {
      const ids = from({}, { version: `v1.35.0+${distribution === 'rke2' ? 'rke2r' : 'k3s'}1` });
      const unchanged = ids.filter((id) => /hostnames|token|member/.test(id));
      expect(unchanged).toEqual([]);
      // Each machine is asked first whether it may go there.
      expect(ids.slice(0, 5)).toEqual(HA_NODES.map(({ address }) => `${address}/preflight`));
      expect(ids).toHaveLength(2 + 4 * 5);
    });
  });
});

const v6 = { clusterCidrs: ['fd01::/56'], serviceCidrs: ['fd02::/112'] };

/** config.yaml, as the script writes it. */
function configOf(task: Task): unknown {
  const line = /^printf '%s' ('(?:[^']|'\\'')*') \| put "\$config\/config.yaml" 600$/m.exec(task.apply);
  return parse(execFileSync('sh', ['-c', `printf '%s' ${line?.[1] ?? ''}`], { encoding: 'utf8' }));
}

const single = (given: GivenInput): unknown =>
  configOf(byId(plan({ nodes: [node('10.0.0.1')], ...given }), '10.0.0.1/install'));

test('config.yaml of RKE2', () => {
  const options = {
    ...{
      clusterCidrs: ['10.1.0.0/16'],
      serviceCidrs: ['10.2.0.0/16'],
      clusterDns: ['10.2.0.10'],
      dataDir: '/data/rke2',
    },
    ...{ cni: 'cilium', multus: true, disable: ['rke2-ingress-nginx'], disableKubeProxy: true, profile: 'cis' },
    ...{ extraArgs: { kubelet: { 'max-pods': '50', 'a-arg': 'it/is=x' } }, tlsSans: ['k.example.com'], selinux: true },
    ...{ etcdSnapshots: { enabled: false }, systemDefaultRegistry: 'r.example.com' },
  };
  const nodes = [
    node('203.0.113.1', {
      internalAddress: '10.0.0.1',
      hostnameOverride: 'one',
      labels: { b: 'c', 'node-role.kubernetes.io/x': '' },
      taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
    }),
  ];
  expect(configOf(byId(plan({ nodes, options }), '203.0.113.1/install'))).toMatchSnapshot();
});

test('config.yaml of K3s with each datastore', () => {
  expect(single({ distribution: 'k3s' })).toMatchObject({ 'cluster-init': true });
  const sqlite = {
    distribution: 'k3s',
    nodes: [node('10.0.0.1', { roles: ['controlplane'] })],
    options: { datastore: { type: 'sqlite' } },
  } as const;
  expect(single(sqlite)).not.toHaveProperty('cluster-init');
  expect(single(sqlite)).not.toHaveProperty('disable-etcd');
  expect(plan(sqlite).map(({ id }) => id)).not.toContain('snapshot');
  const external = { type: 'external', endpointSecretRef: { namespace: 'a', name: 'db', key: 'url' } };
  const tasks = plan({ ...sqlite, options: { datastore: external } });
  const value = byId(tasks, '10.0.0.1/install').stdin?.find(({ name }) => name === 'secret_config');
  expect(renderSource(value!.from, (leaf) => ('secret' in leaf ? 'mysql://p@ss' : 't'))).toBe(
    'token: "t"\ndatastore-endpoint: "mysql://p@ss"\n',
  );
});

test('the installer can come from elsewhere', () => {
  const apply = (installer: NonNullable<ClusterInput['installer']>, distribution: 'rke2' | 'k3s'): string => {
    const input = { ...inputOf({ distribution, nodes: [node('10.0.0.1')] }), installer };
    expect(clusterProblems(input)).toEqual([]);
    return byId(clusterTasks(input), '10.0.0.1/install').apply;
  };
  expect(apply({ url: 'https://m.example.com/install.sh' }, 'rke2')).toContain(' https://m.example.com/install.sh ');
  const onMachine = apply({ path: '/opt/install.sh', sha256: 'A'.repeat(64), artifacts: '/opt/artifacts' }, 'rke2');
  expect(onMachine).not.toContain('curl -sSfL');
  expect(onMachine).toContain('INSTALL_RKE2_ARTIFACT_PATH=/opt/artifacts sh /opt/install.sh');
  expect(onMachine).toContain('a'.repeat(64));
  const k3s = apply({ path: '/opt/install.sh', artifacts: '/opt/artifacts' }, 'k3s');
  expect(k3s).toContain('cp /opt/artifacts/k3s /usr/local/bin/k3s.kindred-new');
  expect(k3s).toContain('INSTALL_K3S_SKIP_DOWNLOAD=true');
});

test('RKE has its own plan', () => {
  const input = inputOf({ distribution: 'rke' });
  const ref = kubeconfigOutput(input);
  expect(byId(clusterTasks(input), ref.task).outputs).toContain(ref.name);
  const options = { rke: { keepFailedRuns: true } };
  const other = kubeconfigOutput(input, options);
  expect(other.task).not.toBe(ref.task);
  expect(byId(clusterTasks(input, options), other.task).outputs).toContain(other.name);
});

test('who is reached how', () => {
  const bastion = { address: '198.51.100.1', port: 22, user: 'jump', hostKey: 'ssh-ed25519 AAAA' };
  const [task] = plan({ nodes: [node('10.0.0.1', { port: 2222, hostKey: 'ssh-ed25519 BBBB', bastion })] });
  const sshKey = { namespace: 'clusters', name: 'ssh', key: 'ssh-privatekey' };
  expect(task?.machine).toEqual({
    address: '10.0.0.1',
    port: 2222,
    user: 'root',
    hostKey: 'ssh-ed25519 BBBB',
    sshKey,
    bastion: { ...bastion, sshKey },
  });
});
