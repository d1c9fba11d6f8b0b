import { input, keptOn, lab, none, refused, runs, up } from './leaving-lab';

/** A machine that leaves is checked by the host key that it had in the plan before. */

test('a machine that leaves and shows another key: nothing is begun, and the error says how to go on', async () => {
  await expect(up(input([0, 2]))).resolves.toMatchObject({ ok: true });
  const before = runs();
  await lab.restart(2, { key: 'new' });
  const answer = await up(input([0]));
  expect(answer).toMatchObject(refused(2));
  expect(answer.message).toContain('put it back among the nodes');
  expect(runs()).toBe(before);
  // The advice, followed.
  await expect(up(input([0, 2]))).resolves.toMatchObject({ ok: true });
  await expect(up(input([0]))).resolves.toMatchObject({ ok: true });
  expect(lab.rke.machines()).toEqual(['127.0.0.11']);
});

test('the keys are those of the plan: none is kept of a machine that was trusted unchecked, and none is asked for', async () => {
  const trusting = { unknownHosts: 'accept' } as const;
  await expect(up(input([0, 2], none), trusting)).resolves.toMatchObject({ ok: true });
  expect(keptOn(0)).toBeUndefined();
  await lab.restart(2, { key: 'new' });
  await expect(up(input([0], none), trusting)).resolves.toMatchObject({ ok: true });
  expect(lab.rke.machines()).toEqual(['127.0.0.11']);
});
