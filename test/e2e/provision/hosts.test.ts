import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { waitFor } from '../../../testing/wait-for';
import { startHosts, type Hosts } from '../../support/hosts';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

/** Whether something answers at a port within a second. On a busy machine a server that runs may take longer; see `toAnswer`. */
async function answers(host: string, port = 22): Promise<boolean> {
  const socket = connect({ host, port, timeout: 1000 });
  try {
    return await new Promise((resolve) => {
      socket.once('data', () => resolve(true));
      for (const event of ['error', 'timeout', 'close']) socket.once(event, () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}

const toAnswer = (host: string): Promise<true> => waitFor(() => answers(host), { describe: `${host} to answer` });

const interfaces = (): readonly string[] => readdirSync('/sys/class/net').filter((name) => name.startsWith('kindred'));

describeOnHosts('hosts', () => {
  let hosts: Hosts;
  beforeAll(async () => {
    hosts = await startHosts({ names: ['alpha', 'beta'], bastion: true, diskSize: '32m' });
  });
  afterAll(() => hosts.end());

  test('each has its own name, network, processes and disk', async () => {
    const [alpha, beta] = [hosts.get('alpha'), hosts.get('beta')];
    await alpha.exec('touch /etc/only-here /root/only-here');
    expect(await alpha.exec('hostname; cat /etc/hostname')).toBe('alpha\nalpha\n');
    expect(await beta.exec('ls /etc/only-here /root/only-here 2>/dev/null || echo none')).toBe('none\n');
    expect(await alpha.exec('ip -o -4 address show eth0')).toContain(` ${alpha.address}/25 `);
    expect((await alpha.exec('cat /proc/[0-9]*/comm')).trim().split('\n')).toContain('sshd');
    expect(await alpha.exec('echo 1 >/proc/sys/vm/swappiness && echo written || echo refused')).toBe('refused\n');
    await expect(alpha.exec('echo oh >&2; exit 3')).rejects.toThrow('failed with 3: oh');
  });

  test('those behind a bastion are reached from there alone', async () => {
    const alpha = hosts.get('alpha');
    const bastion = hosts.bastion!;
    await toAnswer(bastion.address);
    expect(await answers(alpha.address)).toBe(false);
    expect(
      await bastion.exec(`exec 3<>/dev/tcp/${alpha.address}/22; head -n 1 <&3`.replace(/^(.*)$/, `bash -c '$1'`)),
    ).toMatch(/^SSH-2/);
  });

  test('a full disk is full, and a cut network silent', async () => {
    const alpha = hosts.get('alpha');
    const write = 'echo x >/etc/more && cat /etc/more || echo full';
    await alpha.fillDisk();
    expect(await alpha.exec(write)).toBe('full\n');
    await alpha.freeDisk();
    expect(await alpha.exec(write)).toBe('x\n');
    const bastion = hosts.bastion!;
    await bastion.cutNetwork();
    expect(await answers(bastion.address)).toBe(false);
    await bastion.restoreNetwork();
    await toAnswer(bastion.address);
  });
});

describeOnHosts('hosts of a process that was killed', () => {
  let parent: ChildProcess | undefined;
  // Also when the test fails: Jest would wait for as long as the process has its stderr.
  afterEach(() => void parent?.kill('SIGKILL'));

  test('leave no process, no interface and no mount', async () => {
    parent = spawn(process.execPath, ['--import', 'tsx', join(__dirname, 'parent.ts')], {
      cwd: join(__dirname, '../../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(parent.stdout!.setEncoding('utf8'), 'data')) as [string];
    const [address = '', pid = ''] = line.trim().split(' ');
    const link = `kindred${address.split('.')[2] ?? ''}`;
    await toAnswer(address);
    expect(interfaces()).toContain(link);
    parent.kill('SIGKILL');
    await waitFor(() => !interfaces().includes(link) && !existsSync(`/proc/${pid}`), { describe: 'the host to go' });
    expect(readFileSync('/proc/mounts', 'utf8')).not.toMatch(/^host /m);
  });
});
