import { spawn } from 'node:child_process';
import { buildRkeScript } from '../../../provision/rke/scripts/local-script';
import { temporaryFolder } from '../../support/temporary-folder';
import { runScript, shells } from '../shells';

/** Who holds the folder of a run, by the number of a process in it. */

const folder = temporaryFolder('run-folder-');

/** A script that finds the folder of a run, with that number of a process in it. It ends at once where it takes the folder over. */
const after = (name: string, file: 'pid' | 'rke.pid', holder: string): string =>
  buildRkeScript(name, 'rke/up', 'finish')
    .replace('base=/dev/shm', () => `base='${folder}'`)
    .replace('# What has ended', () => `mkdir -p "$dir"; printf '%s\\n' "${holder}" >"$dir/${file}"\n# What has ended`);

describe.each(shells)('%s', (shell, command) => {
  const name = (suffix: string): string => `pids-${shell.replace(/[^a-z]/gi, '').toLowerCase()}-${suffix}`;

  test.each(['pid', 'rke.pid'] as const)('a killed run that had the number of this one is not at work: %s', (file) => {
    const { answer } = runScript(command, after(name('own'), file, '$$'));
    expect(answer).toMatchObject({ reason: 'Failed', message: expect.stringContaining('cluster_yml') as unknown });
  });

  test.each(['pid', 'rke.pid'] as const)('another process is: %s', (file) => {
    const other = spawn('sleep', ['60']);
    try {
      const { answer } = runScript(command, after(name('other'), file, String(other.pid)));
      expect(answer).toMatchObject({ reason: 'Locked', message: expect.stringContaining(`${other.pid}`) as unknown });
    } finally {
      other.kill('SIGKILL');
    }
  });
});
