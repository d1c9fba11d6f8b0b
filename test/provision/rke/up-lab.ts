import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/temporary-folder';
import { startLab, type Lab } from './run';

/**
 * `rke up` and `rke remove`, the scripts run for real, with a stand-in for the program itself. A test file that imports this has a lab of three
 * machines for each of its tests.
 */

export let lab: Lab;
const folder = temporaryFolder('kindred-rke-test-');
let count = 0;

beforeEach(async () => {
  lab = await startLab(join(folder, `lab-${(count += 1)}`), 3);
});
afterEach(async () => {
  await lab.close();
});

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
