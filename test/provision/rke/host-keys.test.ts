import { readdirSync } from 'node:fs';
import type { Task } from '../../../provision';
import { RKE_HOST_KEYS, RKE_UP, rkeTasks } from '../../../provision/rke/tasks';
import {
  CARRIER,
  ED25519,
  MACHINES,
  PLACES,
  TRUSTING,
  commands,
  input,
  lab,
  lineOf,
  keyOf,
  none,
  refused,
  remove,
  runs,
  says,
  taskOf,
  wrongKeys,
} from './host-keys-lab';

/** Which machines RKE is let go to: nothing is begun where one of them shows another key. */

describe.each(PLACES)('%s shows another key', (place) => {
  const { wrong, wrongly } = wrongKeys(place);

  test('a new cluster: nothing is begun', async () => {
    await expect(lab.apply(input(MACHINES, wrongly), RKE_UP)).resolves.toMatchObject(refused(wrong));
    expect(commands()).toEqual(['--version']);
    expect(readdirSync(lab.homes[0]!.home)).toEqual([]);
  });
});

test('a key of another type is another key, also where a machine that is not known is trusted', async () => {
  const other = input(2, (i) => (i === 1 ? ED25519 : keyOf(i)));
  await expect(lab.apply(other, RKE_UP, { unknownHosts: 'accept' })).resolves.toMatchObject(refused(1));
  lab.outputs.set('carrier/keys', lineOf(1, ED25519));
  await expect(
    lab.apply(
      input(2, () => undefined),
      RKE_HOST_KEYS,
      TRUSTING,
    ),
  ).resolves.toMatchObject(refused(1));
});

test('a machine whose key nobody gave is refused, or taken as it is where that is allowed', async () => {
  const unknown = input(2, (i) => (i === 0 ? keyOf(i) : undefined));
  for (const act of [() => lab.apply(unknown, RKE_UP), () => remove(unknown)]) {
    await expect(act()).resolves.toMatchObject({ ok: false, reason: 'HostKeyUnknown', message: says('127.0.0.12') });
  }
  expect(runs()).toEqual([]);
  await expect(lab.apply(unknown, RKE_UP, { unknownHosts: 'accept' })).resolves.toMatchObject({ ok: true });
});

describe('a carrier that keeps what it is given', () => {
  test('meets machines in a task of its own, before any other of RKE, and only those whose keys are missing', () => {
    expect(rkeTasks(input(2, none), TRUSTING).map(({ id }) => id)).toEqual([
      '127.0.0.11/preflight',
      '127.0.0.12/preflight',
      RKE_HOST_KEYS,
      RKE_UP,
    ]);
    expect(taskOf(input(2, none), RKE_UP, TRUSTING).after).toContain(RKE_HOST_KEYS);
    for (const options of [CARRIER, { unknownHosts: 'accept' as const }]) {
      expect(taskOf(input(2, none), RKE_HOST_KEYS, options)).toBeUndefined();
    }
    expect(taskOf(input(2), RKE_HOST_KEYS, TRUSTING)).toBeUndefined();
  });

  test('no key is a reason to run again', () => {
    const lasting = (task: Task): unknown => [task.apply, task.stdin!.filter(({ volatile }) => volatile !== true)];
    const all = [input(2), input(2, none), input(2, () => ED25519)].flatMap((of) =>
      [CARRIER, TRUSTING].map((options) => lasting(taskOf(of, RKE_UP, options))),
    );
    expect(new Set(all.map((each) => JSON.stringify(each))).size).toBe(1);
  });
});
