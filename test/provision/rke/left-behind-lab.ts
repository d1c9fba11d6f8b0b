import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP, rkeTasks } from '../../../provision/rke/tasks';
import { waitForPid } from '../../support/processes';
import { temporaryFolder } from '../../support/temporary-folder';
import { startLab, type Lab } from './run';

/**
 * Runs that are killed in the middle: the scripts run for real, with a stand-in for `rke`. A test file that imports this has a lab of two
 * machines for each of its tests.
 */

const folder = temporaryFolder('kindred-rke-left-');
export let lab: Lab;
let count = 0;

beforeEach(async () => {
  lab = await startLab(join(folder, `left-${(count += 1)}`), 2);
});
afterEach(async () => {
  await lab.close();
});

/** Carries `rke up` out for some of the machines, and kills it and RKE in the middle. @returns the folder that is left behind */
export async function killedUp(machines: number): Promise<string> {
  const task = rkeTasks(lab.input(machines)).find(({ id }) => id === RKE_UP)!;
  lab.rke.control({ fail: 'hang' });
  const running = lab.start(task, task.apply);
  const rke = await waitForPid(join(lab.rke.folder, 'pid'));
  process.kill(running.pid, 'SIGKILL');
  process.kill(rke, 'SIGKILL');
  await running.done;
  const { name } = lab.input(machines);
  const left = readdirSync('/dev/shm').find((entry) => entry.startsWith('kindred-rke-') && entry.endsWith(name));
  return join('/dev/shm', left!);
}
