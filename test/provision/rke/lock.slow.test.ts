// The gate keeps two of these: lock.test.ts.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP } from '../../../provision/rke/tasks';
import {
  elsewhere,
  endProcess,
  first,
  hanging,
  input,
  lab,
  locked,
  locks,
  removal,
  rke,
  runs,
  second,
  taskOf,
} from './lock-lab';

/** Two runs of RKE for one cluster: who ends how, and which machines they have in common. */

test('a script that is killed leaves the lock to its rke, and when that ends, the cluster is free', async () => {
  const { pid, done } = await hanging(input(0, 1));
  process.kill(pid, 'SIGKILL');
  await done;
  await expect(second(input(0, 1))).resolves.toMatchObject(locked(0));
  endProcess(rke!);
  const task = taskOf(input(0, 1));
  // As long as anybody would wait.
  await expect(
    lab.carry({ ...task, apply: elsewhere(task.apply).replace('left=2', 'left=45') }),
  ).resolves.toMatchObject({
    ok: true,
  });
  expect(locks()).toEqual([]);
});

test('what has ended leaves no lock, however it ended', async () => {
  await expect(second(input(0, 1))).resolves.toMatchObject({ ok: true });
  expect(locks()).toEqual([]);
  lab.rke.control({ fail: 'after-nodes', nodes: 1 });
  await expect(second(input(0, 1))).resolves.toMatchObject({ ok: false, reason: 'RkeFailed' });
  expect(locks()).toEqual([]);
  await expect(removal(input(0, 1))).resolves.toMatchObject({ ok: true });
  expect(lab.homes.map(({ home }) => existsSync(join(home, '.kindred')))).toEqual([false, false, false]);
});

describe('runs for other control planes', () => {
  test.each([
    { one: [0, 1], other: [1, 2], common: 1 },
    { one: [1, 2], other: [0, 1], common: 1 },
    { one: [0], other: [2, 1, 0], common: 0 },
    { one: [2, 1, 0], other: [2], common: 2 },
  ])('$one, then $other: they have a machine in common', async ({ one, other, common }) => {
    await hanging(input(...one));
    await expect(second(input(...other))).resolves.toMatchObject(locked(common));
  });

  test('all replaced by others: the machine that leaves is locked too, by what stands in the state', async () => {
    await lab.apply(input(0), RKE_UP, { stateFrom: 'stdin' });
    await hanging(input(0));
    const { address, port, hostKey } = lab.homes[0]!;
    lab.outputs.set('carrier/keys', `[${address}]:${port} ${hostKey}\n`);
    const options = { stateFrom: 'stdin', hostKeys: { output: { task: 'carrier', name: 'keys' } } } as const;
    await expect(second(input(1), options)).resolves.toMatchObject(locked(0));
  });

  test('one of them does not answer: the others are locked', async () => {
    await lab.apply(input(0, 1), RKE_UP);
    await lab.homes[0]!.close();
    await hanging(input(0, 1));
    await expect(second(input(1, 2))).resolves.toMatchObject(locked(1));
  });
});

test('a file system without links', async () => {
  writeFileSync(join(lab.homes[0]!.home, '../bin/ln'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  await hanging(input(0));
  await expect(second(input(0))).resolves.toMatchObject(locked(0));
  endProcess(rke!);
  await first!.done;
  await expect(second(input(0))).resolves.toMatchObject({ ok: true });
  expect(locks()).toEqual([]);
});

test('where no lock can be written, nothing is begun', async () => {
  writeFileSync(join(lab.homes[0]!.home, '.kindred'), 'in the way');
  await expect(second(input(0))).resolves.toMatchObject({ ok: false, changed: false, reason: 'StateNotKept' });
  expect(runs()).toBe(0);
});
