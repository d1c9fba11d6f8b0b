// The gate keeps the case in which the state counts: left-behind.test.ts.
import { cpSync, rmSync } from 'node:fs';
import { RKE_UP } from '../../../provision/rke/tasks';
import { temporaryFolder } from '../../support/temporary-folder';
import { killedUp, lab } from './left-behind-lab';

/** The state in the folder of a killed run, after somebody else went on. */

const authority = (): string => /kube-ca-([^\\]{20})/.exec(lab.outputs.get(`${RKE_UP}/state`)!)![1]!;

describe('a killed run left its folder on this machine', () => {
  test('the cluster was taken down and made anew from elsewhere: its state does not count', async () => {
    const left = await killedUp(1);
    const aside = temporaryFolder('kindred-rke-aside-');
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
    const aside = temporaryFolder('kindred-rke-aside-');
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
