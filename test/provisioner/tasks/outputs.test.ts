import type { Task } from '../../../provision/task/task';
import { executePlan } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import type { Transport } from '../../../provisioner/tasks/transport';

const task: Task = {
  id: 'a/token',
  description: 'Reads a token',
  after: [],
  apply: 'true',
  outputs: ['token'],
  timeoutSeconds: 10,
};

test('an output that its task does not declare is not recorded', async () => {
  const outputs = { token: 'dG9rZW4=', more: 'x'.repeat(1_000_000) };
  const stdout = JSON.stringify({ ok: true, changed: true, outputs });
  const transport: Transport = { run: () => Promise.resolve({ exitCode: 0, stdout, stderr: '' }) };
  let saved: readonly TaskRecord[] = [];
  const nothing = (): Promise<string> => Promise.reject(new Error('it reads nothing'));
  await executePlan({
    ...{ plan: [task], transport, lookup: { secret: nothing, file: nothing } },
    save: (records) => {
      saved = records;
      return Promise.resolve();
    },
  });
  expect(saved.map((record) => record.outputs)).toEqual([{ token: 'dG9rZW4=' }]);
});
