import { parse } from 'yaml';
import { renderSource } from '../../../provision';
import { clusterYml } from '../../../provision/rke/cluster-yml';
import { yamlSource } from '../../../provision/rke/yaml';
import { readClusterYml } from '../../../provision/rke/read-cluster-yml';
import { LAST_FREE_VERSION, rkeProblems, rkeVersionProblem } from '../../../provision/rke/rke-problems';
import { node, rkeInput } from './fixtures';

const PASSWORD = 'p"ss\\w\u2028rd\n\u0085:- x';

/** Everything that can be said. */
const full = rkeInput({
  nodes: [
    node({
      port: 2222,
      internalAddress: '192.168.0.1',
      hostnameOverride: 'one',
      labels: { 'example.com/zone': 'a' },
      taints: [{ key: 'dedicated', effect: 'NoSchedule' }],
      bastion: {
        address: 'bastion.example.com',
        user: 'jump',
        sshKeySecretRef: { namespace: 'machines', name: 'jump' },
      },
    }),
  ],
  options: {
    clusterCidr: '10.52.0.0/16',
    serviceCidr: '10.53.0.0/16',
    clusterDns: '10.53.0.10',
    clusterDomain: 'example.local',
    network: { plugin: 'calico', mtu: 1400 },
    services: {
      etcd: {
        snapshots: {
          s3: {
            endpoint: 's3.example.com',
            bucket: 'backups',
            credentialsSecretRef: { namespace: 'machines', name: 's3' },
          },
        },
      },
      kubeApi: { alwaysPullImages: true, secretsEncryption: true, auditLog: true, serviceNodePortRange: '30000-31000' },
      kubelet: { extraArgs: { 'cgroup-driver': 'systemd' }, failSwapOn: false, generateServingCertificate: true },
      scheduler: { extraArgs: { v: '2' } },
    },
    tlsSans: ['api.example.com'],
    ingressProvider: 'none',
    dnsProvider: 'coredns',
    metricsProvider: 'none',
    ignoreDockerVersion: true,
    enableCriDockerd: true,
    privateRegistries: [
      {
        url: 'registry.example.com',
        credentialsSecretRef: { namespace: 'machines', name: 'registry' },
        isDefault: true,
      },
    ],
    upgradeStrategy: { workerConcurrency: 2, drain: { enabled: true } },
  },
});

describe('cluster.yml of typed options', () => {
  test('says little where little is said', () => {
    const source = yamlSource(clusterYml(rkeInput()));
    expect(parse(renderSource(source, () => 'unused'))).toEqual({
      cluster_name: 'prod',
      kubernetes_version: 'v1.30.5-rancher1-1',
      nodes: [
        {
          address: '10.0.0.1',
          port: '22',
          user: 'rke',
          role: ['controlplane', 'etcd', 'worker'],
          ssh_key_path: '.kindred/cluster-key',
        },
      ],
      ssh_agent_auth: false,
      authorization: { mode: 'rbac' },
      addon_job_timeout: 180,
    });
  });

  test('says everything that can be said', () => {
    expect(
      parse(renderSource(yamlSource(clusterYml(full)), ({ ...leaf }) => `value of ${JSON.stringify(leaf)}`)),
    ).toMatchSnapshot();
  });

  test('a password keeps every character, and is nowhere in the plan', () => {
    const source = yamlSource(clusterYml(full));
    const text = renderSource(source, (leaf) => ('secret' in leaf && leaf.secret.key === 'password' ? PASSWORD : 'x'));
    expect(parse(text)).toHaveProperty('private_registries.0.password', PASSWORD);
    expect(JSON.stringify(source)).not.toContain('p"ss');
  });

  test('what it makes passes its own allow-list', () => {
    const config: unknown = parse(renderSource(yamlSource(clusterYml(full)), () => 'x'));
    const visible = JSON.parse(JSON.stringify(config).replaceAll('.kindred/', 'kindred/')) as unknown;
    expect(readClusterYml(visible).problems).toEqual([]);
  });

  test('a drain has all its inputs, since RKE crashes or forgets otherwise', () => {
    expect(clusterYml(full)['upgrade_strategy']).toEqual({
      max_unavailable_controlplane: '1',
      max_unavailable_worker: '2',
      drain: true,
      node_drain_input: {
        force: false,
        ignore_daemonsets: true,
        delete_local_data: false,
        grace_period: -1,
        timeout: 120,
      },
    });
  });
});

describe('what only RKE minds', () => {
  test.each([
    ['v1.30.14-rancher1-1', undefined],
    ['v1.30.14-rancher2-1', undefined],
    ['v1.9.99-rancher1-1', undefined],
    ['v1.30.15-rancher1-1', LAST_FREE_VERSION],
    ['v1.31.14-rancher1-1', LAST_FREE_VERSION],
    ['v2.0.0-rancher1-1', LAST_FREE_VERSION],
    ['1.30.4', 'as RKE names it'],
  ])('the version %s', (version, said) => {
    if (said === undefined) expect(rkeVersionProblem(version)).toBeUndefined();
    else expect(rkeVersionProblem(version)).toContain(said);
  });

  test('all problems at once, with paths', () => {
    const bastion = { address: 'b.example.com', user: 'jump' };
    const input = rkeInput({
      version: 'v1.32.1-rancher1-1',
      nodes: [node(), node({ address: '10.0.0.2', bastion })],
      options: { serviceCidr: '10.99.0.0/16', network: { plugin: 'weave' } },
    });
    expect(rkeProblems(input).map(({ path }) => path)).toEqual([
      'version',
      'nodes[1].bastion',
      'rke.clusterDns',
      'rke.network.plugin',
    ]);
  });

  test('nothing is wrong with what is right', () => {
    expect(rkeProblems(rkeInput())).toEqual([]);
    expect(rkeProblems(full)).toEqual([]);
  });
});
