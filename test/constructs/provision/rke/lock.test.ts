import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Answer, RkeInput, Task } from '../../../../constructs/provision';
import { RKE_UP, rkeTasks } from '../../../../constructs/provision/rke/tasks';
import type { RkeTaskOptions } from '../../../../constructs/provision/rke/tasks';
import { untilPidIn } from '../../../support/pid-file';
import { temporaryFolder } from '../../../support/temporary-folder';
import type { Lab, Running } from './run';
import { startLab } from './run';

/** Two runs of RKE for one cluster, from two computers: the scripts run for real, over SSH, with a stand-in for `rke`. */

// Real processes on machines that may be busy.
jest.setTimeout(120_000);

const folder = temporaryFolder('kindred-rke-lock-');
let lab: Lab;
let count = 0;
/** What a test has left running: a run, and its `rke`. */
let first: Running | undefined;
let rke: number | undefined;

beforeEach(async () => {
  lab = await startLab(join(folder, `lab-${(count += 1)}`), 3);
  first = undefined;
  rke = undefined;
});
afterEach(async () => {
  if (rke !== undefined) endProcess(rke);
  await first?.done;
  await lab.close();
});

/** Control planes: the machines of these numbers. */
const input = (...machines: readonly number[]): RkeInput =>
  lab.input(3, { nodes: machines.map((i) => lab.input(3).nodes[i]!) });
const taskOf = (of: RkeInput, options?: RkeTaskOptions): Task => rkeTasks(of, options).find(({ id }) => id === RKE_UP)!;

/** A task's script as another computer runs it, which knows nothing of the folders of this one, and does not wait long for a lock. */
function elsewhere(script: string): string {
  const base = join(folder, `elsewhere-${count}`);
  mkdirSync(base, { recursive: true });
  const changed = script.replace('base=/dev/shm', () => `base='${base}'`).replace('left=45', 'left=2');
  expect(changed).toContain('left=2');
  return changed;
}

/** A run that stands still in the middle, and the process that its `rke` is. */
async function hanging(of: RkeInput): Promise<Running> {
  lab.rke.control({ fail: 'hang' });
  first = lab.start(taskOf(of), taskOf(of).apply);
  rke = await untilPidIn(join(lab.rke.folder, 'pid'));
  return first;
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended
  }
}

const second = (of: RkeInput, options?: RkeTaskOptions): Promise<Answer> => {
  const task = taskOf(of, options);
  return lab.carry({ ...task, apply: elsewhere(task.apply) });
};
const removal = (of: RkeInput): Promise<Answer> => {
  const task = taskOf(of);
  return lab.carry({ ...task, apply: elsewhere(task.remove!) });
};
const locked = (i: number): object => ({
  ok: false,
  changed: false,
  reason: 'Locked',
  message: expect.stringContaining(`.lock on ${lab.homes[i]!.address}`) as unknown,
});
const locks = (): readonly string[] =>
  lab.homes.flatMap(({ home }) => {
    const at = join(home, '.kindred/rke');
    return existsSync(at) ? readdirSync(at).filter((name) => name.includes('.lock')) : [];
  });
const runs = (): number => lab.rke.calls().filter(({ argv }) => argv[0] !== '--version').length;

test('a second run is refused while the first one is at work, and says who that is; a removal likewise', async () => {
  const { pid } = await hanging(input(0));
  const before = runs();
  const answer = await second(input(0));
  expect(answer).toMatchObject(locked(0));
  expect(answer.message).toContain(`on ${hostname()}, process ${pid}`);
  expect(answer.message).toMatch(/since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ/);
  await expect(removal(input(0))).resolves.toMatchObject(locked(0));
  expect(runs()).toBe(before);
});

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

test('a lock that its holder cannot take back stays until a person removes it, and the message says where it is', async () => {
  const folderOf = join(lab.homes[0]!.home, '.kindred/rke');
  mkdirSync(folderOf, { recursive: true });
  const { name } = input(0);
  writeFileSync(join(folderOf, `${name}.lock`), 'token somewhere 2026-01-02T03:04:05Z root on gone-pod, process 7\n');
  const { message } = await second(input(0));
  expect(message).toContain('root on gone-pod, process 7, since 2026-01-02T03:04:05Z');
  expect(message).toContain(`remove ~/.kindred/rke/${name}.lock on 127.0.0.11`);
  expect(runs()).toBe(0);
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
