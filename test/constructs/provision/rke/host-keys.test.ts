import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Answer, RkeInput, StdinValue, Task } from '../../../../constructs/provision';
import { rkeRecordToRemove } from '../../../../constructs/provision/rke';
import { RKE_HOST_KEYS, RKE_UP, rkeTasks } from '../../../../constructs/provision/rke/tasks';
import type { RkeTaskOptions } from '../../../../constructs/provision/rke/tasks';
import { temporaryFolder } from '../../../support/temporary-folder';
import { node } from './fixtures';
import type { Lab } from './run';
import { startLab } from './run';

/** Which machines RKE is let go to: the scripts run for real, over SSH, with a stand-in for `rke`. */

// Real processes on machines that may be busy.
jest.setTimeout(120_000);

const MACHINES = 10;
/** A key that no machine has, of another type than theirs. */
const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3pzLrSCbBd6lW0Jm3PaxAT0pUeJvVYFTlb0VW9nZ9L';
/** What the carrier knows, as the provisioner gives it. */
const CARRIER = { stateFrom: 'stdin', hostKeys: { output: { task: 'carrier', name: 'keys' } } } as const;
const TRUSTING: RkeTaskOptions = { ...CARRIER, unknownHosts: 'accept' };

const folder = temporaryFolder('kindred-rke-keys-');
let lab: Lab;
let count = 0;

beforeEach(async () => {
  lab = await startLab(join(folder, `lab-${(count += 1)}`), MACHINES);
});
afterEach(async () => {
  await lab.close();
});

const keyOf = (i: number): string => lab.homes[i]!.hostKey;
const lineOf = (i: number, key: string): string => `[${lab.homes[i]!.address}]:${lab.homes[i]!.port} ${key}\n`;
/** The first machine is all, the others are workers. */
const input = (machines: number, hostKey: (i: number) => string | undefined = keyOf): RkeInput =>
  lab.input(machines, {
    nodes: lab.homes.slice(0, machines).map(({ address, port }, i) => {
      const roles = i === 0 ? ['controlplane', 'etcd', 'worker'] : ['worker'];
      return node({ address, port, roles, hostKey: hostKey(i) });
    }),
  });
const commands = (): readonly string[] => lab.rke.calls().map(({ argv }) => argv.join(' '));
const runs = (): readonly string[] => commands().filter((line) => /^(up|remove) (?!--init)/.test(line));
const taskOf = (of: RkeInput, id: string, options?: RkeTaskOptions): Task =>
  rkeTasks(of, options).find((task) => task.id === id)!;
const remove = (of: RkeInput, options?: RkeTaskOptions): Promise<Answer> => {
  const task = taskOf(of, RKE_UP, options);
  return lab.carry({ ...task, apply: task.remove! });
};
const says = (text: string): unknown => expect.stringContaining(text) as unknown;
const refused = (i: number): object => ({
  ok: false,
  changed: false,
  reason: 'HostKeyMismatch',
  message: says(lab.homes[i]!.address),
});

describe.each(['a control plane machine', 'a worker', 'the last of many'])('%s shows another key', (which) => {
  const wrong = { 'a control plane machine': 0, 'a worker': 1 }[which] ?? MACHINES - 1;
  const wrongly = (i: number): string => keyOf(i === wrong ? (i + 1) % MACHINES : i);

  test('a new cluster: nothing is begun', async () => {
    await expect(lab.apply(input(MACHINES, wrongly), RKE_UP)).resolves.toMatchObject(refused(wrong));
    expect(commands()).toEqual(['--version']);
    expect(readdirSync(lab.homes[0]!.home)).toEqual([]);
  });

  test('an upgrade and a removal: neither a login nor a run of RKE', async () => {
    await lab.apply(input(MACHINES), RKE_UP);
    const before = runs();
    await expect(lab.apply(input(MACHINES, wrongly), RKE_UP)).resolves.toMatchObject(refused(wrong));
    await expect(remove(input(MACHINES, wrongly))).resolves.toMatchObject(refused(wrong));
    expect(runs()).toEqual(before);
    expect(lab.rke.machines()).toHaveLength(MACHINES);
    await expect(remove(input(MACHINES))).resolves.toMatchObject({ ok: true });
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
  const none = (): undefined => undefined;

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

  test('holds a machine to the key that it was met with, at every run', async () => {
    const met = await lab.apply(input(2, none), RKE_HOST_KEYS, TRUSTING);
    expect(met).toMatchObject({ ok: true, changed: false });
    expect(lab.outputs.get(`${RKE_HOST_KEYS}/host_keys`)).toBe(lineOf(0, keyOf(0)) + lineOf(1, keyOf(1)));
    await expect(lab.apply(input(2, none), RKE_UP, TRUSTING)).resolves.toMatchObject({ ok: true });
    lab.outputs.set(`${RKE_HOST_KEYS}/host_keys`, lineOf(0, keyOf(0)) + lineOf(1, keyOf(2)));
    await expect(lab.apply(input(2, none), RKE_UP, TRUSTING)).resolves.toMatchObject(refused(1));
    await expect(lab.apply(input(2, none), RKE_HOST_KEYS, TRUSTING)).resolves.toMatchObject(refused(1));
    await expect(remove(input(2, none), TRUSTING)).resolves.toMatchObject(refused(1));
    // What a person says since comes first, for one port or for all.
    lab.outputs.set('carrier/keys', `${lab.homes[1]!.address} ${keyOf(1)}\n`);
    await expect(remove(input(2, none), TRUSTING)).resolves.toMatchObject({ ok: true });
  });

  test('a machine that was not met is not gone to later, and one that cannot be met is named', async () => {
    await lab.homes[1]!.close();
    const met = await lab.apply(input(2, none), RKE_HOST_KEYS, TRUSTING);
    expect(met).toMatchObject({ ok: false, reason: 'Unreachable', message: says('127.0.0.12') });
    lab.outputs.set(`${RKE_HOST_KEYS}/host_keys`, lineOf(0, keyOf(0)));
    const third = lab.input(3, { nodes: [0, 2].map((i) => input(3, none).nodes[i]!) });
    await expect(lab.apply(third, RKE_UP, TRUSTING)).resolves.toMatchObject({ reason: 'HostKeyUnknown' });
  });

  test('a machine that leaves is held to its key too, as RKE goes there once more', async () => {
    lab.outputs.set('carrier/keys', lineOf(1, keyOf(2)));
    await lab.apply(input(3), RKE_UP, { stateFrom: 'stdin' });
    const before = runs();
    const two = lab.input(3, { nodes: [0, 2].map((i) => input(3).nodes[i]!) });
    await expect(lab.apply(two, RKE_UP, CARRIER)).resolves.toMatchObject(refused(1));
    expect(runs()).toEqual(before);
    lab.outputs.set('carrier/keys', lineOf(1, keyOf(1)));
    await expect(lab.apply(two, RKE_UP, CARRIER)).resolves.toMatchObject({ ok: true });
    expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.13']);
  });
});

describe('a record of a version that accepted every key', () => {
  /** As it stood in the state: the control plane machines alone, and the script of then. */
  function recorded(of: RkeInput): Omit<Task, 'apply'> {
    const { apply, ...task } = taskOf(of, RKE_UP, { stateFrom: 'stdin' });
    expect(apply).not.toBe('');
    const { address, port, user } = of.nodes[0]!;
    const config = [
      'Host m0',
      `  HostName ${address}`,
      '  HostKeyAlias m0',
      `  Port ${port}`,
      `  User ${user}`,
      '  IdentityFile work/.kindred/cluster-key',
      'Host *',
      '  UserKnownHostsFile known_hosts',
      '  StrictHostKeyChecking accept-new',
      '',
    ];
    const texts: Readonly<Record<string, string>> = { ssh_config: config.join('\n'), known_hosts: '' };
    const stdin = task.stdin!.flatMap((value): StdinValue[] => {
      const text = texts[value.name];
      if (value.name === 'unknown_hosts') return [];
      return [text === undefined ? value : { ...value, from: { text } }];
    });
    return { ...task, remove: 'exit 99', stdin };
  }
  const removed = (options: Parameters<typeof rkeRecordToRemove>[2], of = recorded(input(2))): Promise<Answer> => {
    const task = rkeRecordToRemove(of, input(2).name, options, () => undefined);
    return lab.carry({ ...task, apply: task.remove! });
  };

  test('is removed by the script of now, which holds every machine to what is known of it now', async () => {
    await lab.apply(input(2), RKE_UP);
    lab.outputs.set('carrier/keys', lineOf(0, keyOf(0)) + lineOf(1, keyOf(2)));
    await expect(removed(TRUSTING)).resolves.toMatchObject(refused(1));
    lab.outputs.set('carrier/keys', lineOf(0, keyOf(0)));
    await expect(removed(CARRIER)).resolves.toMatchObject({ reason: 'HostKeyUnknown', message: says('127.0.0.12') });
    expect(lab.rke.machines()).toHaveLength(2);
    expect(existsSync(join(lab.homes[0]!.home, '.kindred'))).toBe(true);
    await expect(removed(TRUSTING)).resolves.toMatchObject({ ok: true });
    expect(lab.rke.machines()).toEqual([]);
  });

  test('the machines of a cluster.yml are those of the text that the carrier has', () => {
    const { stdin = [], ...task } = recorded(input(2));
    const of = {
      ...task,
      stdin: stdin.map((value) => (value.name === 'cluster_yml' ? { ...value, from: { file: 'yml' } } : value)),
    };
    const text = JSON.stringify({
      nodes: [{ address: '10.0.0.9', user: 'rke', port: '2222', role: ['controlplane'] }],
    });
    const made = rkeRecordToRemove(of, 'prod', CARRIER, (file) => (file === 'yml' ? text : undefined));
    expect(made.stdin).toContainEqual({ name: 'machines', from: { text: 'm0 10.0.0.9\n' }, volatile: true });
    const other = { ...task, id: '10.0.0.9/preflight' };
    expect(rkeRecordToRemove(other, 'prod', CARRIER, () => undefined)).toBe(other);
  });
});
