import { clusterTasks } from '../../../provision';
import { executePlan, type ExecutePlanResult } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import type { Transport } from '../../../provisioner/tasks/transport';
import { inputOf, node, type GivenInput } from '../../provision/inputs';
import { StandInMachines } from '../../provision/stand-in-machines';

/** Changes that fail halfway and are taken back, as the provisioner carries the plans of RKE2 and K3s out. */

const NODES = [node('10.0.0.1'), node('10.0.0.2', { roles: ['worker'] })];
const GIVEN: GivenInput = { distribution: 'k3s', version: 'v1.34.1+k3s1', nodes: NODES };
const idOf = (script: string): string => /^# (\S+) of the cluster/.exec(script)?.[1] ?? '';

let machines: StandInMachines;
let records: readonly TaskRecord[];
let removed: string[];

function act(given: GivenInput | undefined): Promise<ExecutePlanResult> {
  const plan = given === undefined ? [] : clusterTasks(inputOf({ ...GIVEN, ...given }));
  const transport: Transport = {
    run: ({ script, stdin }) => {
      const id = idOf(script);
      if (!plan.some(({ apply }) => apply === script)) {
        removed.push(id);
        return Promise.resolve({ exitCode: 0, stdout: '{"ok":true,"changed":true}', stderr: '' });
      }
      const { ok, stdout } = machines.begin(id, script, stdin);
      return Promise.resolve({ exitCode: ok ? 0 : 1, stdout, stderr: '' });
    },
  };
  return executePlan({
    plan,
    previous: records,
    transport,
    lookup: { secret: () => Promise.resolve('secret'), file: () => Promise.reject(new Error('no such file')) },
    save: (given) => {
      records = JSON.parse(JSON.stringify(given)) as TaskRecord[];
      return Promise.resolve();
    },
  });
}

beforeEach(() => {
  machines = new StandInMachines();
  records = [];
  removed = [];
});

test.each(['drain', 'install', 'ready'])('a version that fails in %s is taken back', async (step) => {
  expect(await act({})).toMatchObject({ complete: true });
  const before = new Map(machines.made);
  machines.failing = `10.0.0.1/${step}`;
  expect(await act({ version: 'v1.34.9+k3s1' })).toMatchObject({ complete: false });
  machines.failing = undefined;
  const back = await act({});
  expect({ complete: back.complete, made: machines.made }).toEqual({ complete: true, made: before });
  // The only step that uncordons, and of the machine whose turn never came too.
  for (const id of ['10.0.0.1/install', '10.0.0.1/ready', '10.0.0.2/ready']) expect(back.ran).toContain(id);
  expect((await act({})).ran).toEqual([]);
});

test('one machine that is tried again does not have the others begin again', async () => {
  machines.failing = '10.0.0.2/install';
  expect(await act({})).toMatchObject({ complete: false });
  machines.failing = undefined;
  expect((await act({})).ran).toEqual(['10.0.0.2/install', '10.0.0.2/ready', 'members']);
});

test('what its removal reads of a machine is there until the machine is gone', async () => {
  await act({});
  expect(await act({ nodes: NODES.slice(0, 1) })).toMatchObject({ complete: true, errors: [] });
  expect(removed).toEqual(['10.0.0.2/ready', '10.0.0.2/install']);
  expect(await act(undefined)).toMatchObject({ complete: true, errors: [] });
  expect(removed.slice(2)).toEqual(['members', '10.0.0.1/member', '10.0.0.1/ready', '10.0.0.1/install']);
});
