import type { ScriptResult, RkeInput, Task } from '../../../provision';
import { RKE_UP, rkeTasks, type RkeTaskOptions } from '../../../provision/rke/tasks';
import { node } from './fixtures';
import { labForEachTest, type Lab } from './run';

/**
 * Which machines RKE is let go to: the scripts run for real, over SSH, with a stand-in for `rke`. A test file that imports this has a lab of ten
 * machines for each of its tests.
 */

export const MACHINES = 10;
/** A key that no machine has, of another type than theirs. */
export const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3pzLrSCbBd6lW0Jm3PaxAT0pUeJvVYFTlb0VW9nZ9L';
/** What the carrier knows, as the provisioner gives it. */
export const CARRIER = { stateFrom: 'stdin', hostKeys: { output: { task: 'carrier', name: 'keys' } } } as const;
export const TRUSTING: RkeTaskOptions = { ...CARRIER, unknownHosts: 'accept' };

export let lab: Lab;
labForEachTest(MACHINES, (started) => (lab = started));

export const keyOf = (i: number): string => lab.homes[i]!.hostKey;
export const lineOf = (i: number, key: string): string => `[${lab.homes[i]!.address}]:${lab.homes[i]!.port} ${key}\n`;
/** The first machine is all, the others are workers. */
export const input = (machines: number, hostKey: (i: number) => string | undefined = keyOf): RkeInput =>
  lab.input(machines, {
    nodes: lab.homes.slice(0, machines).map(({ address, port }, i) => {
      const roles = i === 0 ? ['controlplane', 'etcd', 'worker'] : ['worker'];
      return node({ address, port, roles, hostKey: hostKey(i) });
    }),
  });
export const commands = (): readonly string[] => lab.rke.calls().map(({ argv }) => argv.join(' '));
export const runs = (): readonly string[] => commands().filter((line) => /^(up|remove) (?!--init)/.test(line));
export const taskOf = (of: RkeInput, id: string, options?: RkeTaskOptions): Task =>
  rkeTasks(of, options).find((task) => task.id === id)!;
export const remove = (of: RkeInput, options?: RkeTaskOptions): Promise<ScriptResult> => {
  const task = taskOf(of, RKE_UP, options);
  return lab.carry({ ...task, apply: task.remove! });
};
export const says = (text: string): unknown => expect.stringContaining(text) as unknown;
export const refused = (i: number): object => ({
  ok: false,
  changed: false,
  reason: 'HostKeyMismatch',
  message: says(lab.homes[i]!.address),
});

/** The places of a machine that shows another key than the one that is known. */
export const PLACES = ['a control plane machine', 'a worker', 'the last of many'] as const;
/** The number of the machine at such a place, and the keys that are given then. */
export function wrongKeys(place: (typeof PLACES)[number]): { wrong: number; wrongly: (i: number) => string } {
  const wrong = { 'a control plane machine': 0, 'a worker': 1, 'the last of many': MACHINES - 1 }[place];
  return { wrong, wrongly: (i) => keyOf(i === wrong ? (i + 1) % MACHINES : i) };
}
/** No key is given. */
export const none = (): undefined => undefined;
