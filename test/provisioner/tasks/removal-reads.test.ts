import { clusterTasks } from '../../../provision';
import { executePlan, type ExecutePlanResult } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import { inputOf, node, type GivenInput } from '../../provision/inputs';
import { StandInMachines } from '../../provision/stand-in-machines';

/** What is taken away when the Secrets that it was made with are gone: with the namespace that they stood in, say. */

const NODES = [node('10.0.0.1'), node('10.0.0.2', { roles: ['worker'] })];
const credentialsSecretRef = { namespace: 'machines', name: 'registry' };
const GIVEN: GivenInput = {
  distribution: 'k3s',
  version: 'v1.34.1+k3s1',
  nodes: NODES,
  options: { registries: [{ host: 'r.example.com', credentialsSecretRef }] },
};

let records: readonly TaskRecord[] = [];

function act(given: GivenInput | undefined, secret: () => Promise<string>): Promise<ExecutePlanResult> {
  const plan = given === undefined ? [] : clusterTasks(inputOf(given));
  const machines = new StandInMachines();
  return executePlan({
    plan,
    previous: records,
    transport: {
      run: ({ script, stdin }) => {
        const { stdout } = machines.begin(/^# (\S+) of the cluster/.exec(script)?.[1] ?? '', script, stdin);
        return Promise.resolve({ exitCode: 0, stdout, stderr: '' });
      },
    },
    lookup: { secret, file: () => Promise.reject(new Error('no such file')) },
    save: (given) => {
      records = JSON.parse(JSON.stringify(given)) as TaskRecord[];
      return Promise.resolve();
    },
  });
}

test('a machine, and then the cluster, is cleaned without the Secrets that only its installation reads', async () => {
  expect(await act(GIVEN, () => Promise.resolve('secret'))).toMatchObject({ complete: true });
  const gone = (): Promise<string> => Promise.reject(new Error('Secret machines/registry does not exist'));
  const without = { ...GIVEN, options: {}, nodes: NODES.slice(0, 1) };
  expect(await act(without, gone)).toMatchObject({ complete: true, errors: [] });
  expect(await act(GIVEN, () => Promise.resolve('secret'))).toMatchObject({ complete: true });
  expect(await act(undefined, gone)).toMatchObject({ complete: true, errors: [], records: [] });
});
