import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ownIdentity } from '../../local/assets/process';
import { removeStaleRuns, RunFolder } from '../../local/run-folder';
import { temporaryFolder } from '../support/temporary-folder';

let runs: string;
let lines: string[];
const deadOwner = JSON.stringify({ ...ownIdentity(), pid: spawnSync(process.execPath, ['-e', '']).pid });

beforeEach(() => {
  runs = temporaryFolder('kindred-runs-');
  lines = [];
});

const clean = (): Promise<void> => removeStaleRuns((line) => lines.push(line), runs);

function leave(name: string, owner?: string): string {
  const folder = path.join(runs, name);
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'data'), '');
  if (owner !== undefined) writeFileSync(path.join(folder, 'owner.json'), owner);
  return folder;
}

test('what dead owners left is removed; what lives or has just begun is not', async () => {
  const crashed = leave('run-crashed', deadOwner);
  const halfRemoved = leave('run-old.stale');
  const living = leave('run-living', JSON.stringify(ownIdentity()));
  const beginning = leave('run-beginning');
  const abandoned = leave('run-abandoned');
  utimesSync(abandoned, 1_600_000_000, 1_600_000_000);
  await Promise.all([clean(), clean()]);
  expect([crashed, halfRemoved, living, beginning, abandoned].map((folder) => existsSync(folder))).toEqual([
    false,
    false,
    true,
    true,
    false,
  ]);
  expect(lines).toContain(`removing what a crashed run left in ${crashed}`);
});

test('there may be nothing to look at', async () => {
  await expect(removeStaleRuns(() => undefined, path.join(runs, 'none'))).resolves.toBeUndefined();
});

test('a folder is for its owner only, and is removed with all that is in it', async () => {
  const run = await RunFolder.create(path.join(runs, 'mine'));
  const secret = run.write('pki/ca.key', 'secret');
  expect([statSync(run.path).mode & 0o777, statSync(secret).mode & 0o777]).toEqual([0o700, 0o600]);
  run.remove();
  expect(existsSync(run.path)).toBe(false);
});

test('a folder with something in it is refused, unless a crashed run left it', async () => {
  await expect(RunFolder.create(leave('full'))).rejects.toThrow('is not empty');
  const run = await RunFolder.create(leave('crashed', deadOwner));
  expect(existsSync(run.file('data'))).toBe(false);
});
