import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP } from '../../../provision/rke/tasks';
import { labForEachTest, type Lab } from './run';

/**
 * Runs that are killed in the middle: the scripts run for real, with a stand-in for `rke`. A test file that imports this has a lab of two
 * machines for each of its tests.
 */

export let lab: Lab;
labForEachTest(2, (started) => (lab = started));

/** Carries `rke up` out for some of the machines, and kills it and RKE in the middle. @returns the folder that is left behind */
export async function killedUp(machines: number): Promise<string> {
  const { running, rke } = await lab.startHanging(lab.input(machines), RKE_UP);
  process.kill(running.pid, 'SIGKILL');
  process.kill(rke, 'SIGKILL');
  await running.done;
  const { name } = lab.input(machines);
  const left = readdirSync('/dev/shm').find((entry) => entry.startsWith('kindred-rke-') && entry.endsWith(name));
  return join('/dev/shm', left!);
}
