import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ScriptResult, RkeInput, Task } from '../../../provision';
import { RKE_UP, rkeTasks, type RkeTaskOptions } from '../../../provision/rke/tasks';
import { labForEachTest, type Lab, type Running } from './run';

/**
 * Two runs of RKE for one cluster, from two computers: the scripts run for real, over SSH, with a stand-in for `rke`. A test file that imports
 * this has a lab of three machines for each of its tests.
 */

export let lab: Lab;
/** What a test has left running: a run, and its `rke`. */
export let first: Running | undefined;
export let rke: number | undefined;

// Before the lab's own hooks: it is closed once nothing runs any more.
afterEach(async () => {
  if (rke !== undefined) endProcess(rke);
  await first?.done;
  first = undefined;
  rke = undefined;
});
labForEachTest(3, (started) => (lab = started));

/** Control planes: the machines of these numbers. */
export const input = (...machines: readonly number[]): RkeInput =>
  lab.input(3, { nodes: machines.map((i) => lab.input(3).nodes[i]!) });
export const taskOf = (of: RkeInput, options?: RkeTaskOptions): Task =>
  rkeTasks(of, options).find(({ id }) => id === RKE_UP)!;

/** A task's script as another computer runs it, which knows nothing of the folders of this one, and does not wait long for a lock. */
export function elsewhere(script: string): string {
  const base = join(lab.folder, 'elsewhere');
  mkdirSync(base, { recursive: true });
  const changed = script.replace('base=/dev/shm', () => `base='${base}'`).replace('left=45', 'left=2');
  expect(changed).toContain('left=2');
  return changed;
}

/** A run that stands still in the middle, and the process that its `rke` is. */
export async function hanging(of: RkeInput): Promise<Running> {
  const hangs = await lab.startHanging(of, RKE_UP);
  first = hangs.running;
  rke = hangs.rke;
  return first;
}

export function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended
  }
}

export const second = (of: RkeInput, options?: RkeTaskOptions): Promise<ScriptResult> => {
  const task = taskOf(of, options);
  return lab.carry({ ...task, apply: elsewhere(task.apply) });
};
export const removal = (of: RkeInput): Promise<ScriptResult> => {
  const task = taskOf(of);
  return lab.carry({ ...task, apply: elsewhere(task.remove!) });
};
export const locked = (i: number): object => ({
  ok: false,
  changed: false,
  reason: 'Locked',
  message: expect.stringContaining(`.lock on ${lab.homes[i]!.address}`) as unknown,
});
export const locks = (): readonly string[] =>
  lab.homes.flatMap(({ home }) => {
    const at = join(home, '.kindred/rke');
    return existsSync(at) ? readdirSync(at).filter((name) => name.includes('.lock')) : [];
  });
export const runs = (): number => lab.rke.calls().filter(({ argv }) => argv[0] !== '--version').length;
