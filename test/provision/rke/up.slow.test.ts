// The gate keeps the central ones of these: up.test.ts.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_RETRY, RKE_UP, rkeTasks } from '../../../provision/rke/tasks';
import { waitForPid } from '../../support/processes';
import type { Running } from './run';
import { copyOf, lab, runFolders, upCalls } from './up-lab';

/** `rke up` and `rke remove`: runs that are killed or told to stop, copies that are lost or torn, and machines that are gone. */

const stateOf = (task: string): { currentState: { rkeConfig?: { nodes: { address: string }[] } } } =>
  JSON.parse(lab.outputs.get(`${task}/state`)!) as never;

/** Waits until the stand-in hangs in the middle of its work. @returns its process */
function untilHanging(): Promise<number> {
  return waitForPid(join(lab.rke.folder, 'pid'));
}

/** Until the kernel has ended it; whether it has been buried depends on this machine's first process. */
function isAtWork(pid: number): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // it is gone
  }
}

/** @returns the process of the stand-in, which hangs on */
async function killed(running: Running): Promise<number> {
  const rke = await untilHanging();
  process.kill(running.pid, 'SIGKILL');
  await running.done.catch(() => undefined);
  return rke;
}

describe('rke up', () => {
  // Which of them is there depends on the machine; sh is one of them everywhere. bash takes a socket as stdin for a reason to read .bashrc.
  const shells: readonly (readonly [string, ...string[]])[] = [
    ['dash'],
    ['bash', '--norc', '--posix'],
    ['busybox', 'sh'],
  ];
  test.each(shells.filter(([name]) => spawnSync(name, ['--help']).error === undefined).map((shell) => ({ shell })))(
    'under $shell.0',
    async ({ shell }) => {
      const up = rkeTasks(lab.input(1)).find(({ id }) => id === RKE_UP)!;
      lab.rke.control({ fail: 'after-state' });
      await expect(lab.carry(up, shell)).resolves.toMatchObject({ ok: false, reason: 'RkeFailed' });
      await expect(lab.carry(up, shell)).resolves.toMatchObject({ ok: true });
    },
  );

  test('killed in the middle, then again', async () => {
    const input = lab.input(1);
    const task = rkeTasks(input).find(({ id }) => id === RKE_UP)!;
    lab.rke.control({ fail: 'hang', nodes: 1 });
    const rke = await killed(lab.start(task, task.apply));
    expect(runFolders(input.name)).toHaveLength(1);
    await expect(lab.apply(input, RKE_UP)).resolves.toMatchObject({
      ok: false,
      reason: 'Locked',
      message: expect.stringContaining(`process ${rke}`) as unknown,
    });
    process.kill(rke, 'SIGKILL');
    while (isAtWork(rke)) await new Promise((resolve) => setImmediate(resolve));
    await expect(lab.apply(input, RKE_UP)).resolves.toMatchObject({ ok: true });
    expect(runFolders(input.name)).toEqual([]);
  });

  test('told to stop: what RKE has begun is let finish, and its state comes back', async () => {
    const input = lab.input(1);
    const task = rkeTasks(input).find(({ id }) => id === RKE_UP)!;
    lab.rke.control({ fail: 'hang' });
    const running = lab.start(task, task.apply);
    const rke = await untilHanging();
    process.kill(running.pid, 'SIGTERM');
    process.kill(rke, 'SIGKILL');
    const { stdout, code } = await running.done;
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      reason: 'RkeFailed',
      outputs: { state: expect.any(String) as unknown },
    });
    expect(stdout).toContain('told to stop');
  });

  test('a machine leaves: the newest state is found on the machines, whatever the carrier has', async () => {
    await lab.apply(lab.input(3), RKE_UP, { stateFrom: 'stdin' });
    const old = new Map(lab.outputs);
    await lab.apply(lab.input(2), RKE_UP, { stateFrom: 'stdin' });
    expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.12']);
    old.forEach((value, key) => lab.outputs.set(key, value));
    await lab.apply(lab.input(2), RKE_UP, { stateFrom: 'stdin' });
    expect(stateOf(RKE_UP).currentState.rkeConfig?.nodes.map(({ address }) => address)).toEqual([
      '127.0.0.11',
      '127.0.0.12',
    ]);
    expect(Number(lab.outputs.get('rke/up/serial'))).toBeGreaterThan(Number(old.get('rke/up/serial')));
  });

  test('the copies are gone, but the carrier has the state', async () => {
    const input = lab.input(1);
    await lab.apply(input, RKE_UP);
    rmSync(copyOf(0, input.name));
    await expect(lab.apply(input, RKE_UP, { stateFrom: 'stdin' })).resolves.toMatchObject({ ok: true });
    expect(existsSync(copyOf(0, input.name))).toBe(true);
  });

  test('a torn copy counts for nothing', async () => {
    const input = lab.input(2);
    await lab.apply(input, RKE_UP);
    const text = readFileSync(copyOf(0, input.name), 'utf8');
    writeFileSync(copyOf(0, input.name), text.replace(' 1 2 ', ' 1 99 ').slice(0, 500));
    const answer = await lab.apply(input, RKE_UP);
    expect(answer).toMatchObject({ ok: true, message: expect.stringContaining('torn') as unknown });
  });

  test('a full disk, a missing rke, another version', async () => {
    const input = lab.input(1);
    lab.rke.control({ fail: 'disk-full' });
    const full = await lab.apply(input, RKE_UP);
    expect(full).toMatchObject({
      ok: false,
      reason: 'RkeFailed',
      message: expect.stringContaining('no space left') as unknown,
    });
    lab.rke.control({ version: 'v2.0.0' });
    await expect(lab.apply(input, RKE_UP)).resolves.toMatchObject({
      ok: true,
      message: expect.stringContaining("'v2.0.0'") as unknown,
    });
    rmSync(join(lab.rke.bin, 'rke'));
    await expect(lab.apply(input, RKE_UP)).resolves.toMatchObject({ ok: false, reason: 'RkeMissing' });
  });
});

describe('for a carrier that forgets the outputs of what failed', () => {
  const options = { keepFailedRuns: true };

  test('all is well: the second task passes on what the first gave', async () => {
    const input = lab.input(1);
    await expect(lab.apply(input, RKE_UP, options)).resolves.toMatchObject({ ok: true, changed: true });
    await expect(lab.apply(input, RKE_RETRY, options)).resolves.toMatchObject({ ok: true, changed: false });
    for (const name of ['state', 'serial', 'kubeconfig']) {
      expect(lab.outputs.get(`${RKE_RETRY}/${name}`)).toBe(lab.outputs.get(`${RKE_UP}/${name}`));
    }
    expect(upCalls()).toHaveLength(2);
  });

  test('the first run fails, and ends well with a state; the second makes up for it', async () => {
    const input = lab.input(1);
    lab.rke.control({ fail: 'after-state' });
    const first = await lab.apply(input, RKE_UP, options);
    expect(first).toMatchObject({ ok: true, message: expect.stringContaining('etcd cluster is unhealthy') as unknown });
    expect(lab.outputs.get('rke/up/outcome')).toBe('failed');
    expect(lab.outputs.get('rke/up/state')).toContain('kube-ca');
    await expect(lab.apply(input, RKE_RETRY, options)).resolves.toMatchObject({ ok: true, changed: true });
    expect(lab.outputs.get(`${RKE_RETRY}/kubeconfig`)).toContain('127.0.0.11');
  });

  test('it fails twice: the second task fails; with no state there is nothing to keep', async () => {
    const input = lab.input(1);
    lab.rke.control({ fail: 'after-state', always: true });
    await lab.apply(input, RKE_UP, options);
    await expect(lab.apply(input, RKE_RETRY, options)).resolves.toMatchObject({ ok: false, reason: 'RkeFailed' });
    lab.rke.control({ fail: 'before-state' });
    await expect(lab.apply(input, RKE_UP, options)).resolves.toMatchObject({
      ok: false,
      reason: 'RkeFailed',
      changed: false,
    });
  });
});

describe('rke remove', () => {
  test('a half-gone cluster', async () => {
    const input = lab.input(3);
    await lab.apply(input, RKE_UP);
    lab.rke.control({ unreachable: ['127.0.0.12'] });
    await lab.homes[1]!.close();
    const answer = await lab.remove(input);
    expect(answer).toMatchObject({ ok: true, message: expect.stringContaining('127.0.0.12') as unknown });
    expect(lab.rke.machines()).toEqual(['127.0.0.12']);
  });

  test('nobody answers: it says so, and does not say that all is gone', async () => {
    const input = lab.input(1);
    await lab.apply(input, RKE_UP);
    lab.rke.control({ unreachable: ['127.0.0.11'] });
    await expect(lab.remove(input)).resolves.toMatchObject({
      ok: false,
      reason: 'Unreachable',
      message: expect.stringContaining('127.0.0.11') as unknown,
    });
    expect(existsSync(copyOf(0, input.name))).toBe(true);
  });
});

test('no secret is in an argument, an environment, a message or what a run leaves behind', async () => {
  const registry = { url: 'r.example.com', credentialsSecretRef: { namespace: 'machines', name: 'registry' } };
  const input = lab.input(2, { options: { privateRegistries: [registry], ignoreDockerVersion: true } });
  lab.rke.control({ fail: 'after-nodes', nodes: 1 });
  lab.watchProcesses();
  const failed = await lab.apply(input, RKE_UP);
  await lab.apply(input, RKE_UP);
  await lab.remove(input);
  const key = lab.secrets.get('ssh/ssh-privatekey')!.split('\n')[2]!;
  const authority = /kube-ca-([^\\]{20})/.exec(lab.outputs.get('rke/up/state')!)![1]!;
  const calls = JSON.stringify(lab.rke.calls());
  expect(calls).toContain('--ignore-docker-version');
  for (const secret of ['CANARY', key, authority]) {
    expect(calls).not.toContain(secret);
    expect([...lab.seen].filter((text) => text.includes(secret) && text.includes('kindred'))).toEqual([]);
    expect([...lab.seen].filter((text) => text.includes(secret))).toEqual([]);
    expect(failed.message).not.toContain(secret);
    expect(
      rkeTasks(input)
        .map(({ apply, remove }) => `${apply}${remove ?? ''}`)
        .join(''),
    ).not.toContain(secret);
  }
  expect(lab.seen.size).toBeGreaterThan(10);
  for (const { env } of lab.rke.calls()) {
    expect(
      Object.keys(env).filter((name) => !['PATH', 'HOME', 'TMPDIR', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name)),
    ).toEqual([]);
  }
});
