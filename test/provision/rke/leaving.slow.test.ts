// The gate keeps the refusal, and what is not kept: leaving.test.ts.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP, rkeTasks } from '../../../provision/rke/tasks';
import { startFakeSshServer } from '../../support/rke/rke';
import { input, keptOn, keysFile, lab, none, refused, runs, up } from './leaving-lab';

/** A machine that leaves is checked by the host key that it had in the plan before: what is kept, where, for how long. */

const locks = (i: number): readonly string[] =>
  readdirSync(join(lab.homes[i]!.home, '.kindred/rke')).filter((name) => name.endsWith('.lock'));
const authority = (state = ''): unknown => /kube-ca-([A-Za-z0-9+/=]{20,})/.exec(state)?.[1] ?? state;
const WITHOUT = { unknownHosts: 'accept' } as const;

test('the keys lie on each control plane machine, are written only when they change, and a machine that left is forgotten', async () => {
  await up(input([0, 1, 2]));
  const written = keptOn(0)!;
  expect(written.addresses).toEqual(['127.0.0.11', '127.0.0.12', '127.0.0.13']);
  expect([1, 2].map(keptOn)).toEqual([written, undefined]);
  await up(input([0, 1, 2]));
  // It is still in the state when the run begins.
  await up(input([0, 1]));
  expect([0, 1].map(keptOn)).toEqual([written, written]);
  await up(input([0, 1]));
  expect(keptOn(0)?.addresses).toEqual(['127.0.0.11', '127.0.0.12']);
  expect(keptOn(0)?.serial).toBeGreaterThan(written.serial);
  expect(keptOn(1)).toEqual(keptOn(0));
  // A control plane machine that joins gets them as well.
  await up(input([0]));
  await up(input([0, 1]));
  expect(keptOn(1)).toEqual(keptOn(0));
});

test('the newest keys count, though machines were away in turn', async () => {
  const away = (i: number): void => lab.rke.control({ unreachable: [`127.0.0.${i + 11}`], always: true });
  await up(input([0, 1, 2]));
  await lab.homes[1]!.close();
  away(1);
  await up(input([0, 1, 2, 3]));
  await lab.restart(1, { key: 'same' });
  await lab.homes[0]!.close();
  await lab.restart(2, { key: 'new' });
  away(0);
  await up(input([0, 1, 2]));
  await lab.restart(0, { key: 'same' });
  expect(keptOn(1)!.serial).toBeGreaterThan(keptOn(0)!.serial);
  lab.rke.control({});
  await expect(up(input([0, 1]))).resolves.toMatchObject({ ok: true });
  expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.12']);
  expect(keptOn(0)).toEqual(keptOn(1));
});

test('a machine that is reached through another port does not leave: what answers at the old one is no concern', async () => {
  await up(input([0, 2]));
  const { address, home } = lab.homes[2]!;
  await lab.restart(2, { key: 'new' });
  const moved = await startFakeSshServer(join(home, '..'), address, readFileSync(join(lab.folder, 'id.pub'), 'utf8'));
  try {
    const of = input([0, 2]);
    const { port, hostKey } = moved;
    const nodes = of.nodes.map((each) => (each.address === address ? { ...each, port, hostKey } : each));
    await expect(up({ ...of, nodes })).resolves.toMatchObject({ ok: true, changed: true });
  } finally {
    await moved.close();
  }
});

test.each(['before-state', 'after-state', 'after-nodes'] as const)(
  'a run that fails (%s) while a machine leaves: the next one still checks it',
  async (fail) => {
    await up(input([0, 2]));
    lab.rke.control({ fail, nodes: 0 });
    await up(input([0]));
    await lab.restart(2, { key: 'new' });
    // Once RKE has taken it out of its list, there is nothing to check any more.
    await expect(up(input([0]))).resolves.toMatchObject(refused(2));
  },
);

test('a run that is killed while a machine leaves: the next one still checks it', async () => {
  await up(input([0, 2]));
  const { running, rke } = await lab.startHanging(input([0]), RKE_UP);
  process.kill(running.pid, 'SIGKILL');
  await running.done;
  process.kill(rke, 'SIGKILL');
  await lab.restart(2, { key: 'new' });
  await expect(up(input([0]))).resolves.toMatchObject(refused(2));
});

describe('a control plane machine that leaves', () => {
  test('is locked while it does', async () => {
    await up(input([0, 1]));
    const { running, rke } = await lab.startHanging(input([0]), RKE_UP);
    expect(locks(1)).toHaveLength(1);
    process.kill(rke, 'SIGKILL');
    await running.done;
    expect(locks(1)).toEqual([]);
  });

  test('is passed over when it accepts the connection and says nothing', async () => {
    await up(input([0, 1]));
    writeFileSync(join(lab.homes[1]!.home, '../bin/mkdir'), '#!/bin/sh\nexec sleep 3\n', { mode: 0o755 });
    const task = rkeTasks(input([0]), { keepFailedRuns: true }).find(({ id }) => id === RKE_UP)!;
    const script = task.apply.replace('waits=300', 'waits=20');
    expect(script).toContain('waits=20');
    await expect(lab.carry({ ...task, apply: script })).resolves.toMatchObject({ ok: true, changed: true });
  });

  test('is passed over when it does not respond', async () => {
    await up(input([0, 1]));
    await lab.homes[1]!.close();
    await expect(up(input([0]))).resolves.toMatchObject({ ok: true });
  });
});

describe('a machine that is trusted unchecked', () => {
  test('is checked when it leaves, if it had a key before', async () => {
    await up(input([0, 2]));
    await lab.restart(2, { key: 'new' });
    const before = runs();
    await expect(up(input([0], none), WITHOUT)).resolves.toMatchObject(refused(2));
    expect(runs()).toBe(before);
  });
});

describe('the keys on a machine', () => {
  test.each([
    ['empty', () => ''],
    ['without its last characters', (text: string) => text.slice(0, -9)],
    ['without its last line', (text: string) => text.split('\n').slice(0, -2).join('\n')],
    ['with another key', (text: string) => text.replace(/AAAA/g, 'AAAB')],
    ['with a serial that is no number', (text: string) => text.replace(/ 1 \d+ /, ' 1 08 ')],
    [
      'a text of somebody else',
      () => 'kindred-rke-hosts 1 9999999999 abc\n[127.0.0.13]:22 $(reboot)\nkindred-rke-state 1 9 abc\n',
    ],
  ])('%s: they count for nothing, the state is found, and the run writes them again', async (_, torn) => {
    await up(input([0, 2]));
    const whole = readFileSync(keysFile(0), 'utf8');
    const state = lab.outputs.get(`${RKE_UP}/state`);
    writeFileSync(keysFile(0), torn(whole));
    lab.outputs.clear();
    await expect(up(input([0, 2]))).resolves.toMatchObject({ ok: true });
    expect(authority(lab.outputs.get(`${RKE_UP}/state`))).toBe(authority(state));
    expect(keptOn(0)?.addresses).toEqual(['127.0.0.11', '127.0.0.13']);
    await lab.restart(2, { key: 'new' });
    await expect(up(input([0]))).resolves.toMatchObject(refused(2));
  });

  test('that cannot be written are said, and the run goes on', async () => {
    await up(input([0, 2]));
    mkdirSync(`${keysFile(0)}.new`);
    const answer = await up(input([0, 2, 3]));
    expect(answer).toMatchObject({ ok: true });
    expect(answer.message).toContain('the host keys could not be kept on 127.0.0.11');
  });

  test('that a person removes hold no machine any more, as the error says', async () => {
    await up(input([0, 2]));
    await lab.restart(2, { key: 'new' });
    const { message } = await up(input([0]));
    expect(message).toContain(`remove ~/.kindred/rke/${input([0]).name}.hosts`);
    rmSync(keysFile(0));
    await expect(up(input([0]))).resolves.toMatchObject({ ok: true });
  });
});
