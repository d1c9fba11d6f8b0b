import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseScriptResult, type ScriptResult } from '../../../provision';
import { preflightScript, type PreflightProps } from '../../../provision/rke/preflight';
import { rkeTasks } from '../../../provision/rke/tasks';
import { temporaryFolder } from '../../support/temporary-folder';
import { rkeInput } from './fixtures';

/** The preflight's script, run for real over files of a machine in a folder, with programs that say what a machine's would. */

interface MachineFiles {
  readonly user?: string;
  readonly dockerVersion?: string;
  readonly dockerError?: string;
  readonly ssh?: string;
  readonly files?: Readonly<Record<string, string>>;
}

const good: Readonly<Record<string, string>> = {
  '/etc/os-release': 'ID=ubuntu\nID_LIKE=debian\n',
  '/etc/ssh/sshd_config': '# AllowTcpForwarding no\nAllowTcpForwarding yes\n',
  '/etc/fstab': '/dev/sda1 / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n',
  '/proc/swaps': 'Filename Type Size Used Priority\n',
  '/proc/sys/net/bridge/bridge-nf-call-iptables': '1\n',
};

function preflight(machine: MachineFiles, props: Partial<PreflightProps> = {}): ScriptResult {
  const root = temporaryFolder('kindred-preflight-');
  const program = (name: string, text: string): void => {
    mkdirSync(join(root, 'bin'), { recursive: true });
    writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(root, 'bin', name), 0o755);
  };
  for (const [path, text] of Object.entries({ ...good, ...machine.files })) {
    if (text === '') continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  program('id', `[ "$1" = -un ] && echo ${machine.user ?? 'rke'} || echo 1000`);
  program('ssh', `echo '${machine.ssh ?? 'OpenSSH_8.9p1 Ubuntu-3, OpenSSL 3.0.2'}' >&2`);
  const said =
    machine.dockerError === undefined
      ? `echo ${machine.dockerVersion ?? '24.0.7'}`
      : `echo '${machine.dockerError}' >&2; exit 1`;
  program('docker', `case "$*" in *info*) echo cgroupfs ;; *) ${said} ;; esac`);
  const script = preflightScript({ where: 'nodes[0]', ...props, root });
  const { stdout, stderr } = spawnSync('sh', ['-c', script], {
    encoding: 'utf8',
    env: { PATH: `${join(root, 'bin')}:${process.env['PATH'] ?? ''}` },
  });
  expect(stderr).toBe('');
  return parseScriptResult(stdout);
}

const findings = (answer: ScriptResult): string[] => answer.message?.split('\n') ?? [];

describe('the preflight of a machine for RKE', () => {
  test('nothing is wrong', () => {
    expect(preflight({})).toEqual({ ok: true, changed: false });
  });

  test('root on CentOS', () => {
    const answer = preflight({ user: 'root', files: { '/etc/os-release': 'ID="centos"\nID_LIKE="rhel fedora"\n' } });
    expect(answer).toMatchObject({ ok: false, changed: false, reason: 'PreflightFailed' });
    expect(answer.message).toMatch(/^nodes\[0\]\.user is root, but on centos.*useradd -m -G docker/);
    expect(preflight({ user: 'root' }).ok).toBe(true);
  });

  test.each<[string, MachineFiles, Partial<PreflightProps>, RegExp]>([
    [
      'group docker',
      { dockerError: 'permission denied while trying to connect' },
      {},
      /usermod -aG docker rke; .*\/etc\/group/,
    ],
    ['Docker down', { dockerError: 'Cannot connect to the Docker daemon' }, {}, /systemctl enable --now docker/],
    ['Docker version', { dockerVersion: '17.12.1-ce' }, {}, /17\.12\.1-ce is none that RKE knows/],
    ['SSH version', { ssh: 'OpenSSH_6.6.1p1, OpenSSL 1.0.1e' }, {}, /OpenSSH 6\.6 .*install 6\.7/],
    [
      'tunnels',
      { files: { '/etc/ssh/sshd_config': 'Port 22\nAllowTcpForwarding no\n' } },
      {},
      /\(\/etc\/ssh\/sshd_config:2:AllowTcpForwarding no\)/,
    ],
    [
      'sockets',
      { files: { '/etc/ssh/sshd_config.d/x.conf': 'allowstreamlocalforwarding no\n' } },
      {},
      /\/etc\/ssh\/sshd_config\.d\/x\.conf:1:/,
    ],
    [
      'mounts',
      { files: { '/etc/systemd/system/docker.service': '[Service]\nMountFlags=slave\n' } },
      {},
      /\/etc\/systemd\/system\/docker\.service:2:MountFlags=slave.*MountFlags=shared/,
    ],
    [
      'cgroups',
      { files: { '/etc/docker/daemon.json': '{\n "exec-opts": ["native.cgroupdriver=cgroupfs"]\n}\n' } },
      { cgroupDriver: 'systemd' },
      /has cgroup-driver systemd, but Docker has cgroupfs.*\/etc\/docker\/daemon\.json:2:/,
    ],
    [
      'swap',
      { files: { '/proc/swaps': 'Filename\n/dev/sda2 partition 1 0 -2\n' } },
      { failSwapOn: true },
      /swapoff -a.*\/etc\/fstab:2:/,
    ],
    [
      'bridge-nf',
      {
        files: {
          '/proc/sys/net/bridge/bridge-nf-call-iptables': '0\n',
          '/etc/sysctl.conf': '\nnet.bridge.bridge-nf-call-iptables = 0\n',
        },
      },
      {},
      /now \/etc\/sysctl\.conf:2:/,
    ],
    ['br_netfilter', { files: { '/proc/sys/net/bridge/bridge-nf-call-iptables': '' } }, {}, /modprobe br_netfilter/],
  ])('%s', (_, machine, props, said) => {
    const answer = preflight(machine, props);
    expect(answer).toMatchObject({ ok: false, reason: 'PreflightFailed' });
    expect(findings(answer)).toEqual([expect.stringMatching(said)]);
  });

  test('all of it at once', () => {
    const answer = preflight({
      dockerError: 'permission denied',
      files: {
        '/etc/ssh/sshd_config': 'AllowTcpForwarding no\nDisableForwarding yes\n',
        '/proc/sys/net/bridge/bridge-nf-call-iptables': '0\n',
      },
    });
    expect(findings(answer)).toHaveLength(4);
  });

  test('what may be meant so is only said', () => {
    expect(preflight({ dockerVersion: '29.1.0' })).toMatchObject({
      ok: true,
      message: expect.stringContaining('29.1.0') as unknown,
    });
    expect(preflight({ dockerVersion: '17.12.1' }, { ignoreDockerVersion: true }).ok).toBe(true);
    expect(preflight({ files: { '/proc/swaps': 'Filename\n/dev/sda2 partition 1 0 -2\n' } }).ok).toBe(true);
    expect(preflight({ files: { '/etc/ssh/sshd_config': 'PermitTunnel no\n' } })).toMatchObject({
      ok: true,
      message: expect.stringContaining('sshd_config:1:') as unknown,
    });
  });

  test('comes before RKE, once a machine, knowing what the configuration asks for', () => {
    const options = { services: { kubelet: { extraArgs: { 'cgroup-driver': 'systemd', 'fail-swap-on': 'true' } } } };
    const [look, up] = rkeTasks(rkeInput({ options }));
    expect(look).toMatchObject({ id: '10.0.0.1/preflight', machine: { address: '10.0.0.1', user: 'rke' }, after: [] });
    expect(look!.apply).toContain('want_cgroup=systemd\nfail_swap=true');
    expect(up!.after).toEqual(['10.0.0.1/preflight']);
  });
});
