import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderSource } from '../../../provision';
import { clusterYml } from '../../../provision/rke/cluster-yml';
import { yamlSource } from '../../../provision/rke/yaml';
import { readClusterYml } from '../../../provision/rke/read-cluster-yml';
import { RKE_UP, rkeClusterYmlText } from '../../../provision/rke/tasks';
import { temporaryFolder } from '../../support/temporary-folder';
import { node, rkeInput } from './fixtures';
import { startLab } from './run';

/** The real program where there is one: `rke up --init` parses and validates a cluster.yml without touching a machine. */

const found = spawnSync('rke', ['--version'], { encoding: 'utf8' });
const version = found.status === 0 ? found.stdout.trim() : undefined;
const real = version === undefined ? test.skip : test;
const where = version ?? 'no rke on the PATH, so the real one checks no cluster.yml here';

/** What `rke up --init` makes of a cluster.yml: the configuration in its state, or what it said. */
function initialised(text: string): { config?: Record<string, unknown>; said: string } {
  const folder = temporaryFolder('kindred-real-rke-');
  mkdirSync(join(folder, 'work/.kindred'), { recursive: true });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'work/.kindred/cluster-key')]);
  writeFileSync(join(folder, 'cluster.yml'), text);
  const run = () =>
    spawnSync('rke', ['up', '--init', '--config', '../cluster.yml'], {
      cwd: join(folder, 'work'),
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: folder },
    });
  // Without a state RKE asks the machines whether they run a cluster from before there were states, and leaves those out that do not answer. With one
  // it asks nobody.
  run();
  const { status, stderr, stdout } = run();
  const said = `${stdout}${stderr}`;
  if (status !== 0) return { said };
  const state = JSON.parse(readFileSync(join(folder, 'cluster.rkestate'), 'utf8')) as {
    desiredState: { rkeConfig: Record<string, unknown>; certificatesBundle: Record<string, unknown> };
  };
  expect(state.desiredState.certificatesBundle).toHaveProperty('kube-ca');
  return { config: state.desiredState.rkeConfig, said };
}

describe(`the real rke (${where})`, () => {
  real('takes the cluster.yml of typed options, and understands every field', () => {
    const input = rkeInput({
      nodes: [
        node({
          address: '127.0.0.1',
          port: 1,
          internalAddress: '192.168.0.1',
          hostnameOverride: 'one',
          labels: { zone: 'a' },
          taints: [{ key: 'k', effect: 'NoSchedule' }],
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
              retention: 3,
              s3: {
                endpoint: 's3.example.com',
                bucket: 'backups',
                credentialsSecretRef: { namespace: 'n', name: 's3' },
              },
            },
          },
          kubeApi: {
            alwaysPullImages: true,
            secretsEncryption: true,
            auditLog: true,
            serviceNodePortRange: '30000-31000',
          },
          kubelet: { extraArgs: { 'cgroup-driver': 'systemd' }, generateServingCertificate: true },
        },
        tlsSans: ['api.example.com'],
        ingressProvider: 'none',
        dnsProvider: 'coredns',
        metricsProvider: 'none',
        enableCriDockerd: true,
        privateRegistries: [{ url: 'registry.example.com', credentialsSecretRef: { namespace: 'n', name: 'r' } }],
        upgradeStrategy: { workerConcurrency: 2, drain: { enabled: true, deleteEmptyDirData: true } },
      },
    });
    const { config, said } = initialised(renderSource(yamlSource(clusterYml(input)), (leaf) => JSON.stringify(leaf)));
    expect(said).not.toContain('level=fatal');
    expect(config).toMatchObject({
      clusterName: 'prod',
      nodes: [
        {
          address: '127.0.0.1',
          port: '1',
          internalAddress: '192.168.0.1',
          hostnameOverride: 'one',
          sshKeyPath: '.kindred/cluster-key',
          labels: { zone: 'a' },
          taints: [{ key: 'k', effect: 'NoSchedule' }],
        },
      ],
      network: { plugin: 'calico', mtu: 1400 },
      services: {
        etcd: {
          backupConfig: { enabled: true, retention: 3, intervalHours: 12, s3BackupConfig: { bucketName: 'backups' } },
        },
        kubeApi: {
          alwaysPullImages: true,
          serviceClusterIpRange: '10.53.0.0/16',
          secretsEncryptionConfig: { enabled: true },
          auditLog: { enabled: true },
        },
        kubeController: { clusterCidr: '10.52.0.0/16' },
        kubelet: {
          clusterDnsServer: '10.53.0.10',
          clusterDomain: 'example.local',
          extraArgs: { 'cgroup-driver': 'systemd' },
          generateServingCertificate: true,
        },
      },
      authentication: { sans: ['api.example.com'] },
      ingress: { provider: 'none' },
      monitoring: { provider: 'none' },
      enableCriDockerd: true,
      upgradeStrategy: {
        maxUnavailableWorker: '2',
        drain: true,
        nodeDrainInput: { timeout: 120, gracePeriod: -1, deleteLocalData: true, ignoreDaemonSets: true },
      },
      addonJobTimeout: 180,
    });
  });

  real("takes a user's cluster.yml as it was read", () => {
    const file = readClusterYml(
      {
        nodes: [
          {
            address: '127.0.0.1',
            port: 1,
            user: 'tht',
            ssh_key_path: 'id_rsa',
            role: ['controlplane', 'worker', 'etcd'],
          },
        ],
        services: { kubelet: { extra_args: { 'cgroup-driver': 'systemd', 'fail-swap-on': false } } },
      },
      { sshKey: true },
    );
    const { config, said } = initialised(rkeClusterYmlText(file, true));
    expect(said).not.toContain('level=fatal');
    expect(config).toMatchObject({ services: { kubelet: { extraArgs: { 'fail-swap-on': 'false' } } } });
  });

  real('refuses what it does not know: the check is one', () => {
    expect(initialised('{"nodes": [{"address": "a", "user": "u", "role": ["king"]}]}').said).toContain('level=fatal');
  });

  real('fails where no Docker is, and its state, made before that, is kept for the next run', async () => {
    const lab = await startLab(join(temporaryFolder('kindred-real-rke-'), 'lab'), 1);
    try {
      rmSync(join(lab.rke.bin, 'rke'));
      const program = execFileSync('sh', ['-c', 'command -v rke'], { encoding: 'utf8' }).trim();
      symlinkSync(program, join(lab.rke.bin, 'rke'));
      const input = lab.input(1);
      const failed = await lab.apply(input, RKE_UP);
      expect(failed).toMatchObject({ ok: false, reason: 'RkeFailed', changed: true });
      expect(failed.message).toContain('Cluster must have at least one etcd plane host');
      const authority = (state: string | undefined): unknown =>
        (JSON.parse(state ?? '{}') as { desiredState: { certificatesBundle: Record<string, { keyPEM: string }> } })
          .desiredState.certificatesBundle['kube-ca']?.keyPEM;
      const first = authority(lab.outputs.get('rke/up/state'));
      expect(first).toContain('PRIVATE KEY');
      lab.outputs.clear();
      await lab.apply(input, RKE_UP);
      expect(authority(lab.outputs.get('rke/up/state'))).toBe(first);
      await expect(lab.remove(input)).resolves.toMatchObject({ ok: false, reason: 'Unreachable' });
    } finally {
      await lab.close();
    }
  });
});
