import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../testing/wait-for';
import { OperatorProcess } from '../../testing';
import { LogLines } from '../../testing/log-lines';
import { temporaryFolder } from '../support/temporary-folder';

const parents: ChildProcess[] = [];
afterEach(() => {
  for (const parent of parents.splice(0)) parent.kill('SIGKILL');
});
const temporary = temporaryFolder('kindred-operator-process-');

/** The living processes (zombies are dead) whose command line speaks of a folder. */
function processesOf(folder: string): readonly string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder);
    } catch {
      return false; // ended while we looked
    }
  });
}

/** Starts a parent; resolves when its operator runs. */
async function startParent(...how: ['stay' | 'leave', 'frozen' | 'awake']) {
  const folder = mkdtempSync(join(temporary, 'parent-'));
  const child = spawn(process.execPath, ['--import', 'tsx', join(__dirname, 'parent.ts'), folder, ...how], {
    cwd: join(__dirname, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  parents.push(child);
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const first = (await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), exited])) as unknown[];
  return { folder, child, exited, operator: String(first[0]).trim() };
}

const allGone = (folder: string): Promise<true> =>
  waitFor(() => processesOf(folder).length === 0, { describe: 'the operator and its guard to be gone' });

// It looks for processes in /proc.
(process.platform === 'linux' ? describe : describe.skip)('an operator', () => {
  test.each([
    ['SIGINT', 'awake'],
    ['SIGTERM', 'frozen'],
    ['SIGKILL', 'frozen'],
  ] as const)('does not outlive a parent that gets %s: it is %s', async (signal, how) => {
    const { folder, child, exited, operator } = await startParent('stay', how);
    const isFrozen = (): boolean => /^State:\s+T/m.test(readFileSync(`/proc/${operator}/status`, 'utf8'));
    await waitFor(() => isFrozen() === (how === 'frozen'), { describe: 'the signal to have come' });
    // The pid is the operator's, not its guard's.
    expect(readFileSync(`/proc/${operator}/cmdline`, 'utf8')).toMatch(/^[^\0]*node\0/);
    child.kill(signal);
    await exited;
    await allGone(folder);
  });

  test('does not keep a parent that has forgotten it from ending, and ends with it', async () => {
    const { folder, exited } = await startParent('leave', 'awake');
    expect(await exited).toEqual([0, null]);
    await allGone(folder);
  });

  test('that never serves is killed', async () => {
    const line = jest.spyOn(LogLines.prototype, 'line').mockRejectedValueOnce(new Error('too late'));
    const kubeconfig = join(temporary, 'none');
    await expect(OperatorProcess.start({ kubeconfig })).rejects.toThrow('too late');
    expect(processesOf(kubeconfig)).toEqual([]);
    line.mockRestore();
  });
});
