import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP, rkeTasks } from '../../../../constructs/provision/rke/tasks';
import { untilPidIn } from '../../../support/pid-file';
import { temporaryFolder } from '../../../support/temporary-folder';
import type { Lab } from './run';
import { startLab } from './run';

/** What a run passes on and leaves behind, where things go wrong: the scripts run for real, with a stand-in for `rke`. */

// Real processes on machines that may be busy.
jest.setTimeout(120_000);

const folder = temporaryFolder('kindred-rke-left-');
let lab: Lab;
let count = 0;

beforeEach(async () => {
  lab = await startLab(join(folder, `left-${(count += 1)}`), 2);
});
afterEach(async () => {
  await lab.close();
});

/** Carries `rke up` out for some of the machines, and kills it and RKE in the middle. @returns the folder that is left behind */
async function killedUp(machines: number): Promise<string> {
  const task = rkeTasks(lab.input(machines)).find(({ id }) => id === RKE_UP)!;
  lab.rke.control({ fail: 'hang' });
  const running = lab.start(task, task.apply);
  const rke = await untilPidIn(join(lab.rke.folder, 'pid'));
  process.kill(running.pid, 'SIGKILL');
  process.kill(rke, 'SIGKILL');
  await running.done;
  const { name } = lab.input(machines);
  const left = readdirSync('/dev/shm').find((entry) => entry.startsWith('kindred-rke-') && entry.endsWith(name));
  return join('/dev/shm', left!);
}

const authority = (): string => /kube-ca-([^\\]{20})/.exec(lab.outputs.get(`${RKE_UP}/state`)!)![1]!;

describe('a killed run left its folder on this machine', () => {
  test('nobody went on since: its state counts', async () => {
    await killedUp(1);
    await expect(lab.apply(lab.input(1), RKE_UP)).resolves.toMatchObject({ ok: true });
    expect(lab.rke.machines()).toEqual(['127.0.0.11']);
  });

  test('the cluster was taken down and made anew from elsewhere: its state does not count', async () => {
    const left = await killedUp(1);
    const aside = join(folder, `aside-${count}`);
    cpSync(left, aside, { recursive: true });
    rmSync(left, { recursive: true });
    await expect(lab.remove(lab.input(1))).resolves.toMatchObject({ ok: true });
    await expect(lab.apply(lab.input(1), RKE_UP)).resolves.toMatchObject({ ok: true });
    const made = authority();
    cpSync(aside, left, { recursive: true });
    await expect(lab.apply(lab.input(1), RKE_UP)).resolves.toMatchObject({ ok: true });
    expect(authority()).toBe(made);
  });

  test('another run changed the cluster from elsewhere: its state does not count', async () => {
    const left = await killedUp(1);
    const aside = join(folder, `aside-${count}`);
    cpSync(left, aside, { recursive: true });
    rmSync(left, { recursive: true });
    await expect(lab.apply(lab.input(2), RKE_UP)).resolves.toMatchObject({ ok: true });
    cpSync(aside, left, { recursive: true });
    lab.rke.control({ fail: 'after-state' });
    await expect(lab.apply(lab.input(2), RKE_UP)).resolves.toMatchObject({ ok: false, reason: 'RkeFailed' });
    const { currentState } = JSON.parse(lab.outputs.get(`${RKE_UP}/state`)!) as {
      readonly currentState: { readonly rkeConfig?: { readonly nodes: readonly unknown[] } };
    };
    expect(currentState.rkeConfig?.nodes).toHaveLength(2);
  });
});

test('a secret at which a long line of RKE is cut off is hidden all the same', async () => {
  const registry = { url: 'r.example.com', credentialsSecretRef: { namespace: 'machines', name: 'registry' } };
  lab.secrets.set('registry/password', 'CANARY-pass-word-pass-word-pass-word');
  // The line is longer than what is passed on, and the secret stands across the end of that.
  const line = `level=fatal msg="${'. '.repeat(285)}CANARY-pass-word-pass-word-pass-word"`;
  writeFileSync(join(lab.rke.bin, 'rke'), `#!/bin/sh\nprintf '%s\\n' '${line}'\nexit 1\n`);
  const { message } = await lab.apply(lab.input(1, { options: { privateRegistries: [registry] } }), RKE_UP);
  expect(message).toContain('. . .');
  expect(message).not.toContain('CANARY');
});
