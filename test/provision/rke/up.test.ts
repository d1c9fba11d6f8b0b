import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_RETRY, RKE_UP, rkeKubeconfig, rkeTasks } from '../../../provision/rke/tasks';
import { copyOf, lab, runFolders, upCalls } from './up-lab';

/** `rke up` and `rke remove`: what a cluster is made of, and what is kept of it. */

describe('rke up', () => {
  test('a fresh cluster: state and kubeconfig come back, and a copy of the state lies on each control plane machine', async () => {
    const input = lab.input(2);
    const answer = await lab.apply(input, RKE_UP);
    expect(answer).toMatchObject({ ok: true, changed: true });
    expect(answer.message).toBeUndefined();
    expect(Object.keys(answer.outputs!).sort()).toEqual(['kubeconfig', 'serial', 'state']);
    expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.12']);
    expect(lab.outputs.get('rke/up/kubeconfig')).toContain('https://127.0.0.11:6443');
    for (const i of [0, 1]) {
      const [head, ...rest] = readFileSync(copyOf(i, input.name), 'utf8').split('\n');
      expect(head).toMatch(/^kindred-rke-state 1 2 [0-9a-f]{64}$/);
      expect(rest.join('\n')).toBe(lab.outputs.get('rke/up/state'));
      expect(statSync(copyOf(i, input.name)).mode & 0o777).toBe(0o600);
    }
    expect(upCalls()).toEqual(['up --init --config ../cluster.yml', 'up --config ../cluster.yml']);
    expect(runFolders(input.name)).toEqual([]);
  });

  test('the state is kept before any machine is touched', async () => {
    const input = lab.input(1);
    mkdirSync(`${copyOf(0, input.name)}.new`, { recursive: true }); // in the way
    const answer = await lab.apply(input, RKE_UP);
    expect(answer).toMatchObject({ ok: false, reason: 'StateNotKept', changed: false });
    expect(lab.rke.machines()).toEqual([]);
    expect(upCalls()).toEqual(['up --init --config ../cluster.yml']);
  });

  test('failed halfway, then again: the same certificates, the same cluster', async () => {
    const input = lab.input(2);
    lab.rke.control({ fail: 'after-nodes', nodes: 1 });
    const failed = await lab.apply(input, RKE_UP);
    expect(failed).toMatchObject({ ok: false, reason: 'RkeFailed', changed: true });
    expect(failed.message).toContain('Failed to bring up Worker Plane on [127.0.0.12]');
    expect(failed.outputs).toHaveProperty('state');
    // A carrier that forgot all of it: the copies on the machines are enough, or the first machine would refuse another authority.
    lab.outputs.clear();
    await expect(lab.apply(input, RKE_UP)).resolves.toMatchObject({ ok: true });
    expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.12']);
  });

  test('a cluster runs, but its state is nowhere: it is left alone', async () => {
    const input = lab.input(2);
    lab.homes[1]!.setContainers(['kubelet', 'etcd']);
    const answer = await lab.apply(input, RKE_UP);
    expect(answer).toMatchObject({ ok: false, reason: 'StateLost', changed: false });
    expect(answer.message).toContain('127.0.0.12');
    expect(upCalls()).toEqual([]);
  });
});

describe('for a carrier that forgets the outputs of what failed', () => {
  const options = { keepFailedRuns: true };

  test('the kubeconfig is that of the last task', () => {
    expect(rkeKubeconfig(options)).toEqual({ task: RKE_RETRY, name: 'kubeconfig' });
    expect(rkeTasks(lab.input(1), options).map(({ id }) => id)).toEqual(['127.0.0.11/preflight', RKE_UP, RKE_RETRY]);
  });
});

describe('rke remove', () => {
  test('takes down the cluster, and the copies of its state', async () => {
    const input = lab.input(2);
    await lab.apply(input, RKE_UP);
    await expect(lab.remove(input)).resolves.toMatchObject({ ok: true, changed: true });
    expect(lab.rke.machines()).toEqual([]);
    expect(lab.homes.map(({ home }) => existsSync(join(home, '.kindred')))).toEqual([false, false, false]);
    await expect(lab.remove(input)).resolves.toMatchObject({ ok: true });
  });
});
