import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RkeInput, ScriptResult } from '../../../provision';
import { RKE_UP, type RkeTaskOptions } from '../../../provision/rke/tasks';
import { node } from './fixtures';
import { labForEachTest, type Lab } from './run';

/**
 * Machines that leave a cluster, by a runner that knows no host key but those of the plan, as Pulumi does. A test file that imports this has a
 * lab of four machines for each of its tests.
 */

export let lab: Lab;
labForEachTest(4, (started) => (lab = started));

/** A cluster whose control plane is machines 0 and 1, as far as they are among these; the others are workers. */
export const input = (machines: readonly number[], hostKey = keyOf): RkeInput =>
  lab.input(4, {
    nodes: machines.map((i) => {
      const { address, port } = lab.homes[i]!;
      return node({
        address,
        port,
        roles: i < 2 ? ['controlplane', 'etcd', 'worker'] : ['worker'],
        hostKey: hostKey(i),
      });
    }),
  });
export function keyOf(i: number): string | undefined {
  return lab.homes[i]!.hostKey;
}
export const none = (): undefined => undefined;

export const up = (of: RkeInput, options: RkeTaskOptions = {}): Promise<ScriptResult> =>
  lab.apply(of, RKE_UP, { keepFailedRuns: true, ...options });

/** Runs of RKE that may change machines. */
export const runs = (): number => lab.rke.calls().filter(({ argv }) => argv[0] === 'up' && argv[1] !== '--init').length;

export const refused = (i: number): object => ({
  ok: false,
  changed: false,
  reason: 'HostKeyMismatch',
  message: expect.stringContaining(`shown by ${lab.homes[i]!.address},`) as unknown,
});

/** Where the host keys lie on a control plane machine. */
export const keysFile = (i: number): string => join(lab.homes[i]!.home, '.kindred/rke', `${input([0]).name}.hosts`);

/** The host keys that lie on a control plane machine: their serial, and the machines' addresses; undefined if there are none. */
export function keptOn(i: number): { readonly serial: number; readonly addresses: readonly string[] } | undefined {
  if (!existsSync(keysFile(i))) return undefined;
  const [head = '', ...lines] = readFileSync(keysFile(i), 'utf8').trimEnd().split('\n');
  const serial = /^kindred-rke-hosts 1 (\d+) [0-9a-f]{64}$/.exec(head)?.[1] ?? head;
  return { serial: Number(serial), addresses: lines.map((line) => /^\[(.*)\]:/.exec(line)?.[1] ?? line) };
}
