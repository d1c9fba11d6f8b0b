import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { labForEachTest, type Lab } from './run';

/**
 * `rke up` and `rke remove`, the scripts run for real, with a stand-in for the program itself. A test file that imports this has a lab of three
 * machines for each of its tests.
 */

export let lab: Lab;
labForEachTest(3, (started) => (lab = started));

export const copyOf = (i: number, name: string): string => join(lab.homes[i]!.home, `.kindred/rke/${name}.state`);
export const runFolders = (name: string): string[] =>
  ['/dev/shm', process.env['TMPDIR'] ?? '/tmp'].flatMap((base) =>
    existsSync(base)
      ? readdirSync(base).filter((entry) => entry.startsWith('kindred-rke-') && entry.endsWith(name))
      : [],
  );
export const upCalls = (): string[] =>
  lab.rke
    .calls()
    .map(({ argv }) => argv.join(' '))
    .filter((line) => line.startsWith('up'));
