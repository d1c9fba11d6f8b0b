import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { buildScript, type ScriptProps } from '../../../provision/shell/script';
import { temporaryFolder } from '../../support/temporary-folder';
import { runScript, startScript } from '../shells';

/** A folder of its own for each test. */
export const fresh = (): string => temporaryFolder('provision-');
export const props = (stateFolder: string, more: Partial<ScriptProps> = {}): ScriptProps => ({
  cluster: 'one',
  id: '10.0.0.1/install',
  doing: 'trying',
  stateFolder,
  ...more,
});

/** A script that has taken the lock of its cluster, and holds it. */
export async function holder(shell: readonly string[], state: string): Promise<ReturnType<typeof startScript>> {
  const child = startScript(
    shell,
    buildScript(props(state, { lockSeconds: 5 }), [`: >"$state/held"`, 'sleep 30', 'finish']),
  );
  await untilThere(state, 'held');
  return child;
}

/** Waits until a script has made a file in its folder. */
async function untilThere(state: string, file: string): Promise<void> {
  mkdirSync(`${state}/one`, { recursive: true });
  while (!readdirSync(`${state}/one`).includes(file)) await delay(20);
}

/** Tests of scripts that wait, each for a second. */
export function testWaits(shell: readonly string[]): void {
  describe('lock', () => {
    test('waits for a time, then says who has it; a dead holder has nothing', async () => {
      const state = fresh();
      const child = await holder(shell, state);
      const next = buildScript(props(state, { id: 'snapshot', lockSeconds: 1 }), ['finish']);
      const { answer } = runScript(shell, next);
      expect(answer).toMatchObject({ ok: false, changed: false, reason: 'Locked' });
      expect(answer.message).toMatch(
        /another run has held .*\/one\/lock for more than 1 s \(process \d+, task 10.0.0.1\/install\)/,
      );
      const gone = once(child, 'exit');
      process.kill(-child.pid!, 'SIGKILL');
      await gone;
      expect(runScript(shell, next).answer.ok).toBe(true);
    });
  });

  test('a cut connection does not end it', async () => {
    const state = fresh();
    const child = startScript(
      shell,
      buildScript(props(state, { generation: 'g', lockSeconds: 5 }), [
        `: >"$state/begun"`,
        'sleep 1',
        'changed=true',
        'mark',
        'finish',
      ]),
    );
    await untilThere(state, 'begun');
    child.stdout?.destroy();
    child.stderr?.destroy();
    process.kill(-child.pid!, 'SIGHUP');
    const next = buildScript(props(state, { generation: 'g', lockSeconds: 20 }), [
      'if marked; then finish; fi',
      'die Failed "it was not finished"',
    ]);
    // Waits for the lock, then finds it done.
    expect(runScript(shell, next).answer).toEqual({ ok: true, changed: false });
  });

  test('told to stop, it says so', async () => {
    const state = fresh();
    const child = startScript(shell, buildScript(props(state), [`: >"$state/begun"`, 'sleep 1', 'sleep 30', 'finish']));
    let stdout = '';
    child.stdout?.on('data', (data: Buffer) => (stdout += data.toString()));
    await untilThere(state, 'begun');
    const closed = once(child, 'close');
    process.kill(child.pid!, 'SIGTERM');
    await closed;
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, reason: 'Failed' });
    expect(stdout).toContain('it was told to stop');
  });
}
