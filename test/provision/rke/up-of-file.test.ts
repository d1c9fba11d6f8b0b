import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Task } from '../../../provision';
import { readClusterYml } from '../../../provision/rke/read-cluster-yml';
import { RKE_UP, rkeClusterYmlText, rkeTasksFromFile, type RkeTaskOptions } from '../../../provision/rke/tasks';
import { labForEachTest, type Lab } from './run';

/** A user's cluster.yml, from its reading to a cluster. */

let lab: Lab;
labForEachTest(2, (started) => (lab = started));

const SSH_KEY = { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' };
const CARRIER = { task: 'carrier', name: 'cluster_yml' };
const MASKS = { task: 'carrier', name: 'masks' };

function tasks(sshKey: boolean, fields: object = {}, options: RkeTaskOptions = {}): readonly Task[] {
  const config = {
    kubernetes_version: 'v1.30.5-rancher1-1',
    nodes: lab.homes.map(({ address, port }) => ({
      address,
      port,
      user: 'root',
      role: ['controlplane', 'etcd'],
      ssh_key_path: 'keys/id_rsa',
    })),
    private_registries: [{ url: 'r.example.com', user: 'u', password: 'CANARY-password' }],
    ...fields,
  };
  const file = readClusterYml(config, { sshKey });
  expect(file.problems).toEqual([]);
  lab.outputs.set('carrier/cluster_yml', rkeClusterYmlText(file, sshKey));
  lab.outputs.set('carrier/masks', file.secretTexts.map((text) => `${JSON.stringify(text)}\n`).join(''));
  const hostKeys = Object.fromEntries(lab.homes.map(({ address, hostKey }) => [address, hostKey]));
  return rkeTasksFromFile(
    {
      name: lab.input(1).name,
      file,
      hostKeys,
      clusterYml: { output: CARRIER },
      masks: { output: MASKS },
      ...(sshKey ? { sshKey: SSH_KEY } : {}),
    },
    options,
  );
}

test('with the key file that it names: the file lies where cluster.yml says, readable by nobody else', async () => {
  const key = join(lab.folder, 'keys/id_rsa');
  mkdirSync(dirname(key), { recursive: true });
  cpSync(join(lab.folder, 'id'), key);
  const [up, ...others] = tasks(false);
  expect(others).toEqual([]);
  expect(up!.stdin).toContainEqual({ name: 'key_0', from: { file: 'keys/id_rsa' }, volatile: true });
  await expect(lab.carry(up!)).resolves.toMatchObject({ ok: true, changed: true });
  expect(lab.rke.machines()).toEqual(['127.0.0.11', '127.0.0.12']);
});

test('with a key from a Secret in its place, and a preflight of each machine first', async () => {
  const plan = tasks(true);
  expect(plan.map(({ id }) => id)).toEqual(['127.0.0.11/preflight', '127.0.0.12/preflight', RKE_UP]);
  expect(plan[0]!.machine).toMatchObject({ sshKey: SSH_KEY, hostKey: lab.homes[0]!.hostKey });
  await expect(lab.carry(plan.at(-1)!)).resolves.toMatchObject({ ok: true });
  expect(lab.outputs.get('carrier/cluster_yml')).not.toContain('keys/id_rsa');
});

test('no secret of the file is in the plan', () => {
  expect(JSON.stringify(tasks(true))).not.toContain('CANARY');
  expect(lab.outputs.get('carrier/cluster_yml')).toContain('CANARY-password');
});

test('a secret of the file that RKE says in an error is not in the message', async () => {
  const password = 'CANARY "with\\all that-CANARY';
  const registries = [{ url: 'r.example.com', user: 'u', password }];
  const desiredState = { rkeConfig: { clusterName: password } };
  lab.outputs.set('rke/up/state', JSON.stringify({ desiredState, currentState: {} }));
  lab.outputs.set('rke/up/serial', '7');
  const up = tasks(true, { private_registries: registries }, { stateFrom: 'stdin' }).at(-1)!;
  const answer = await lab.carry(up);
  expect(answer).toMatchObject({ ok: false, reason: 'RkeFailed', changed: false });
  expect(answer.message).toContain('the state file is that of the cluster ***');
  expect(answer.message).not.toContain('CANARY');
});

test('a file with problems makes no plan, and says none of its values', () => {
  const file = readClusterYml(JSON.parse(readFileSync(join(__dirname, '../../../package.json'), 'utf8')));
  const input = { name: 'x', file, clusterYml: { output: CARRIER }, masks: { output: MASKS } };
  expect(() => rkeTasksFromFile(input)).toThrow('has problems');
});
