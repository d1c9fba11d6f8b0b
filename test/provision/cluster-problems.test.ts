import { clusterProblems } from '../../provision/cluster-problems';
import type { ClusterInput } from '../../provision/cluster/cluster-input';
import { HA_NODES, inputOf, node, type GivenInput } from './inputs';

/** Problems as `path: message`, of which only the parts that tests name are compared. */
const problems = (input: ClusterInput, previous?: ClusterInput): string[] =>
  clusterProblems(input, previous).map(({ path, message }) => `${path}: ${message}`);
const of = (given: GivenInput): string[] => problems(inputOf(given));
const like = (...parts: string[]): unknown[] => parts.map((part) => expect.stringContaining(part) as unknown);
const all = ['controlplane', 'etcd', 'worker'] as const;

test.each(['rke', 'rke2', 'k3s'] as const)('a sound cluster of %s has none', (distribution) => {
  expect(of({ distribution })).toEqual([]);
  expect(problems(inputOf({ distribution }), inputOf({ distribution }))).toEqual([]);
});

test('all at once, each with its place', () => {
  const nodes = [
    node('10.0.0.1', { internalAddress: '192.168.0.1', hostnameOverride: 'one' }),
    node('10.0.0.2', { internalAddress: '192.168.0.1', hostnameOverride: 'one', labels: { 'kindred.dev/node': 'x' } }),
    node('2001:db8::1', { roles: ['worker'] }),
    node('2001:db8:0::1', { roles: ['worker'] }),
    node('1.2.3', { roles: ['worker'] }),
    node('2001:db8:::1', { roles: ['worker'], hostnameOverride: 'fd00::1' }),
  ];
  const drain = { force: true };
  const input = inputOf({ nodes, options: { registrationAddress: undefined, upgradeStrategy: { drain } } });
  expect(problems({ ...input, version: 'v1.34.1+k3s1' })).toEqual(
    like(
      'version: "v1.34.1+k3s1" is no version of rke2, which have "+rke2r" in them',
      'nodes[3].address: "2001:db8:0::1" is also that of nodes[2]',
      'nodes[1].internalAddress: "192.168.0.1" is also that of nodes[0]',
      'nodes[1].hostnameOverride: "one" is also that of nodes[0]',
      'nodes[1].labels: the label kindred.dev/node is ours',
      'nodes[4].address: "1.2.3" is not an IP address',
      'nodes[5].address: "2001:db8:::1" is not an IP address',
      'nodes[5].hostnameOverride: "fd00::1" is an address',
      'nodes: 2 nodes have the role etcd, which bear no more failures than 1 do: make it 1 or 3',
      'rke2.registrationAddress: is needed with 2 servers',
      'rke2.upgradeStrategy.drain.enabled: is false',
    ),
  );
});

test('an address that is the same as the internal one of another', () => {
  const nodes = [node('10.0.0.1'), node('192.0.2.2', { internalAddress: '10.0.0.1', roles: ['worker'] })];
  expect(of({ nodes })).toEqual(like('nodes[1].internalAddress: "10.0.0.1" is also that of nodes[0]'));
});

test('roles', () => {
  const missing = { ...inputOf({}), nodes: inputOf({}).nodes.slice(3) };
  expect(problems(missing)).toEqual(
    like('nodes: no node has the role controlplane', 'nodes: no node has the role etcd; give it to one, three or five'),
  );
  const rke = inputOf({ distribution: 'rke' });
  expect(problems({ ...rke, nodes: rke.nodes.slice(0, 3) })).toEqual(like('nodes: no node has the role worker'));
  const sqlite = { distribution: 'k3s', options: { datastore: { type: 'sqlite' } } } as const;
  expect(of({ ...sqlite, nodes: [node('10.0.0.1')] })).toEqual(
    like('nodes[0].roles: the role etcd means nothing with the datastore sqlite'),
  );
});

test('what drain needs', () => {
  const drain = { enabled: true, ignoreDaemonSets: false, gracePeriodSeconds: 300 };
  expect(of({ options: { upgradeStrategy: { drain } } })).toEqual(
    like(
      'rke2.upgradeStrategy.drain.ignoreDaemonSets: must be true',
      'rke2.upgradeStrategy.drain.timeoutSeconds: must be more than gracePeriodSeconds (300)',
    ),
  );
  expect(of({ options: { upgradeStrategy: { drain: {} } } })).toEqual([]);
});

test('networks', () => {
  const one = (options: object, address = '192.0.2.1'): string[] => of({ nodes: [node(address)], options });
  expect(one({ clusterCidrs: ['10.1.0.0/16', '10.2.0.0/16'] })).toEqual(
    like('rke2.clusterCidrs: two ranges must be one of IPv4 and one of IPv6'),
  );
  expect(one({ clusterCidrs: ['fd00:::/56'] })).toEqual(like('rke2.clusterCidrs: "fd00:::/56" is no range'));
  expect(one({ clusterCidrs: ['10.0.0.0/8'], serviceCidrs: ['10.96.0.0/12'] })).toEqual(
    like('rke2.serviceCidrs: overlaps with the addresses of pods'),
  );
  expect(one({ clusterCidrs: ['10.42.0.0/16', 'fd01::/56'] })).toEqual(
    like('rke2.serviceCidrs: pods have IPv4, IPv6, Services IPv4'),
  );
  expect(one({ clusterDns: ['10.44.0.10'] })).toEqual(like('rke2.clusterDns: 10.44.0.10 is not inside'));
  expect(
    one({
      clusterDns: ['10.43.0.10'],
      clusterCidrs: ['10.42.0.0/16', 'fd01::/56'],
      serviceCidrs: ['10.43.0.0/16', 'fd02::/112'],
    }),
  ).toEqual([]);
  expect(one({}, '10.42.7.1')).toEqual(like('nodes[0].address: is inside the addresses of pods'));
  expect(one({ tlsSans: ['api.example.com', 'fd00:::1'] })).toEqual(like('rke2.tlsSans[1]: "fd00:::1" is not an IP'));
  expect(one({ registrationAddress: '1.2.3.4.5' })).toEqual(like('rke2.registrationAddress: "1.2.3.4.5" is not an IP'));
});

test.each([
  ['1-65535', true],
  ['30000-30000', true],
  ['32767-30000', false],
  ['30000-65536', false],
  ['99999-1', false],
])('%s as ports of Services: %p', (serviceNodePortRange, valid) => {
  const message = `serviceNodePortRange: ${serviceNodePortRange} is no range of ports`;
  const found = (path: string): unknown[] => (valid ? [] : like(`${path}.${message}`));
  expect(of({ distribution: 'k3s', options: { serviceNodePortRange } })).toEqual(found('k3s'));
  const options = { services: { kubeApi: { serviceNodePortRange } } };
  expect(of({ distribution: 'rke', options })).toEqual(found('rke.services.kubeApi'));
});

test.each([
  ['v1.34.1+rke2r1', 'v1.34.1+rke2r1', undefined],
  ['v1.33.9+rke2r1', 'v1.34.1+rke2r1', undefined],
  ['v1.34.1+rke2r1', 'v1.34.1+rke2r2', undefined],
  ['v1.34.1-rc1+rke2r1', 'v1.34.1+rke2r1', undefined],
  ['v1.9.1+rke2r1', 'v1.10.0+rke2r1', undefined],
  ['v1.32.1+rke2r1', 'v1.34.1+rke2r1', 'skips a minor version: v1.32.1+rke2r1 is installed. Go to a v1.33 first'],
  ['v1.34.2+rke2r1', 'v1.34.1+rke2r1', 'is older than v1.34.2+rke2r1'],
  ['v1.34.1+rke2r2', 'v1.34.1+rke2r1', 'is older than v1.34.1+rke2r2'],
  ['v1.34.1+rke2r1', 'v1.34.1-rc2+rke2r1', 'is older than v1.34.1+rke2r1'],
])('from %s to %s', (from, to, message) => {
  const found = problems(inputOf({ version: to }), inputOf({ version: from }));
  expect(found).toEqual(message === undefined ? [] : like(`version: ${message}`));
});

describe('what cannot change', () => {
  const between = (from: GivenInput, to: GivenInput): string[] => problems(inputOf(to), inputOf(from));

  test('name and distribution', () => {
    const input = inputOf({});
    expect(problems({ ...input, name: 'other' }, input)).toEqual(like('name: is "prod" where it is installed'));
    expect(between({}, { distribution: 'k3s' })).toEqual(like('distribution: cannot be changed from rke2'));
  });

  test('options for life', () => {
    const to = { clusterDomain: 'other.local', cni: 'cilium', dataDir: '/data/rke2', clusterCidrs: ['10.42.0.0/16'] };
    expect(between({}, { options: to })).toEqual(
      like(
        'rke2.clusterDomain: cannot be changed once the cluster stands: it was cluster.local',
        'rke2.dataDir: cannot be changed once the cluster stands: it was not set',
        'rke2.cni: cannot be changed once the cluster stands: it was canal',
      ),
    );
    const k3s = { distribution: 'k3s', nodes: [node('10.0.0.1')] } as const;
    expect(
      between(k3s, {
        ...k3s,
        nodes: [node('10.0.0.1', { roles: ['controlplane'] })],
        options: { datastore: { type: 'sqlite' } },
      }),
    ).toEqual(like('k3s.datastore.type: cannot be changed', 'nodes[0].roles: were controlplane, etcd, worker'));
  });

  test('what a node is', () => {
    const to = [
      ...HA_NODES.slice(0, 3),
      node('10.0.0.4', { roles: ['worker'], hostnameOverride: 'four', internalAddress: '10.1.0.4' }),
      node('10.0.0.5', { roles: [...all] }),
    ];
    expect(between({}, { nodes: to })).toEqual(
      like(
        'nodes: 4 nodes have the role etcd',
        'nodes[3].internalAddress: was not set',
        'nodes[3].hostnameOverride: was not set',
        'nodes[4].roles: were worker',
      ),
    );
    const worker = [...HA_NODES.slice(0, 2), node('10.0.0.3', { roles: [...all] }), ...HA_NODES.slice(3)];
    expect(between({}, { nodes: worker })).toEqual([]);
  });

  test('a new server never comes first', () => {
    const fresh = node('10.0.0.9');
    const kept = [fresh, ...HA_NODES.slice(1)];
    expect(between({}, { nodes: kept })).toEqual(
      like('nodes[0]: is new, but as the first server it would begin a second cluster'),
    );
    expect(between({}, { nodes: [...HA_NODES.slice(1), fresh] })).toEqual([]);
    const replaced = [fresh, ...HA_NODES.slice(3)];
    expect(between({}, { nodes: replaced })).toEqual(like('nodes[0]: none of the servers that exist is left'));
  });
});

test('what only RKE minds', () => {
  expect(of({ distribution: 'rke', version: 'v1.31.1-rancher1-1' })).toEqual(
    like('version: v1.31.1-rancher1-1 is newer'),
  );
  const input = inputOf({ distribution: 'rke' });
  expect(problems({ ...input, version: 'v1.30.1+k3s1' })).toEqual(like('version: "v1.30.1+k3s1" is no version of rke'));
});

test('what the schemas refuse is refused here too', () => {
  const input = inputOf({ nodes: [node('10.0.0.1')] });
  const first = input.nodes[0]!;
  const bad = {
    ...input,
    name: 'a b',
    nodes: [{ ...first, user: 'root; id' }],
    options: { ...input.options, dataDir: '/a b' },
  };
  expect(problems(bad as ClusterInput)).toEqual(
    like('name: "a b" must be', 'nodes[0].user: must be', 'rke2.dataDir: must be'),
  );
});

describe('a folder of data', () => {
  const withFolder = (distribution: 'rke2' | 'k3s', dataDir: string): string[] => {
    const input = inputOf({ distribution });
    return problems({ ...input, options: { ...input.options, dataDir } } as ClusterInput);
  };

  const own = [
    '/var/lib/rancher/k3s',
    '/var/lib/k3s',
    '/mnt/data',
    '/data/k3s',
    '/opt/k3s',
    '/home/ops/k3s',
    '/root/k3s',
  ];
  const alike = ['/library/k3s', '/binaries/k3s', '/var/library/k3s', '/var/lib/dockers', '/users/usr'];
  test.each([...own, ...alike])('%s is fine', (dataDir) => {
    for (const distribution of ['rke2', 'k3s'] as const) expect(withFolder(distribution, dataDir)).toEqual([]);
  });

  const roots = ['/data', '/usr', '/etc', '/home', '/opt', '/root', '/var', '/srv'];
  const systems = [
    '/usr/local',
    '/usr/local/k3s',
    '/etc/rancher',
    '/bin/x',
    '/lib64/k3s',
    '/dev/shm',
    '/run/k3s',
    '/var/run/k3s',
  ];
  const shared = ['/home/ops', '/var/lib', '/var/opt', '/var/log/k3s', '/var/lib/kindred', '/var/lib/kubelet/pods'];
  test.each([...roots, ...systems, ...shared])('%s is not', (dataDir) => {
    for (const distribution of ['rke2', 'k3s'] as const) {
      expect(withFolder(distribution, dataDir)).toEqual(
        like(`${distribution}.dataDir: must be a folder of the distribution's own, not at the root`),
      );
    }
  });

  test('a path that is none is told once', () => {
    const dataDirs = ['/', '/data/', '/data/../usr', 'data/k3s'];
    for (const dataDir of dataDirs) {
      expect(withFolder('k3s', dataDir)).toEqual(like('k3s.dataDir: must be an absolute path'));
    }
  });
});

test('the installer', () => {
  const input = inputOf({});
  const installer = { url: 'ftp://x', path: 'relative', sha256: 'abc', artifacts: '/a b' };
  expect(problems({ ...input, installer })).toEqual(
    like(
      'installer.url: must be',
      'installer.path: must be',
      'installer.artifacts: must be',
      'installer.sha256: must be',
      'installer: has url and path',
    ),
  );
  expect(problems({ ...inputOf({ distribution: 'rke' }), installer: {} })).toEqual(
    like('installer: is for RKE2 and K3s'),
  );
  const url = 'http://mirror.example.com/install.sh';
  expect(problems({ ...input, installer: { url } })).toEqual(
    like('installer.url: is fetched by http, and run as root'),
  );
  expect(problems({ ...input, installer: { url, sha256: 'a'.repeat(64) } })).toEqual([]);
  expect(problems({ ...input, installer: { url: url.replace('http', 'https') } })).toEqual([]);
});
