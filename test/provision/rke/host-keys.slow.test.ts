// The gate keeps the refusals before anything is begun: host-keys.test.ts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ScriptResult, RkeInput, StdinValue, Task } from '../../../provision';
import { refreshRkeRemoval } from '../../../provision/rke';
import { RKE_HOST_KEYS, RKE_UP } from '../../../provision/rke/tasks';
import {
  CARRIER,
  MACHINES,
  PLACES,
  TRUSTING,
  input,
  keyOf,
  lab,
  lineOf,
  none,
  refused,
  remove,
  runs,
  says,
  taskOf,
  wrongKeys,
} from './host-keys-lab';

/** Which machines RKE is let go to: later runs, removals, machines that leave, and records of before. */

describe.each(PLACES)('%s shows another key', (place) => {
  const { wrong, wrongly } = wrongKeys(place);

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

describe('a carrier that keeps what it is given', () => {
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
    const answer = await lab.apply(two, RKE_UP, CARRIER);
    expect(answer).toMatchObject(refused(1));
    expect(answer.message).toContain('put it back among the nodes');
    expect(answer.message).not.toContain('.hosts');
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
  const removed = (
    options: Parameters<typeof refreshRkeRemoval>[2],
    of = recorded(input(2)),
  ): Promise<ScriptResult> => {
    const task = refreshRkeRemoval(of, input(2).name, options, () => undefined);
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
    const made = refreshRkeRemoval(of, 'prod', CARRIER, (file) => (file === 'yml' ? text : undefined));
    expect(made.stdin).toContainEqual({ name: 'machines', from: { text: 'm0 10.0.0.9\n' }, volatile: true });
    const other = { ...task, id: '10.0.0.9/preflight' };
    expect(refreshRkeRemoval(other, 'prod', CARRIER, () => undefined)).toBe(other);
  });
});
