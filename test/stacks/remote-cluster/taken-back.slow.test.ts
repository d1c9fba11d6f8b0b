import * as pulumi from '@pulumi/pulumi';
import { agent, server } from './clusters';
import { ChangedCluster, badOption, good, program, withPassword } from './changed-cluster';
import type { Args } from './changed-cluster';

// The gate keeps the change that failed in the draining: taken-back.test.ts.

/** Changes that fail halfway and are taken back: Pulumi keeps what a Command that failed was before, and so finds nothing changed. */
jest.setTimeout(900_000);

let cluster: ChangedCluster;
beforeEach(() => {
  cluster = new ChangedCluster();
});

test.each([
  ['an option', badOption],
  ['a secret', withPassword('wrong-password')],
])('%s that made an installation fail', async (_, bad) => {
  await cluster.up(good);
  const before = new Map(cluster.machines.made);
  expect(await cluster.failedUp(bad, '10.0.0.1/install')).not.toContain('10.0.0.1/ready');
  const back = await cluster.up(good);
  // On the machine whose turn never came as well: what was begun there is not known.
  for (const id of ['10.0.0.1/install', '10.0.0.1/ready', '10.0.0.2/ready']) expect(back).toContain(id);
  expect(cluster.machines.made).toEqual(before);
  expect(await cluster.up(good)).toEqual([]);
});

test('a change that failed twice, and another that failed in between', async () => {
  await cluster.up(good);
  const before = new Map(cluster.machines.made);
  await cluster.failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/install');
  await cluster.failedUp(good, '10.0.0.1/ready');
  await cluster.failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/preflight');
  await cluster.failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/ready');
  expect(await cluster.up(good)).toEqual(expect.arrayContaining(['10.0.0.1/install', '10.0.0.1/ready']));
  expect(cluster.machines.made).toEqual(before);
});

test('a preview of what stands shows nothing, of what failed all that will run, and of one machine more only that', async () => {
  await cluster.up(good);
  expect((await cluster.engine.preview(program(good))).summary).toEqual([]);
  await cluster.failedUp(badOption, '10.0.0.1/install');
  const { changes } = await cluster.engine.preview(program(good));
  const names = changes.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['prod/10.0.0.1/install', 'prod/10.0.0.1/ready']));
  expect(names.filter((name) => name.endsWith('/removal'))).toEqual([]);
  await cluster.up(good);
  const more = await cluster.up({ ...good, nodes: [server(1), agent(2), agent(3)] });
  expect(more.filter((id) => /^10\.0\.0\.[12]\//.test(id) && !id.endsWith('/preflight'))).toEqual([]);
  expect(more).toContain('10.0.0.3/ready');
});

test('a preview shows nothing either where only some addresses are Outputs', async () => {
  const nodes = () => [server(1, { name: 'first', address: pulumi.output('10.0.0.1') }), agent(2)];
  const plainOptions: Args = { options: {} };
  await cluster.up({ ...plainOptions, nodes: nodes() });
  expect((await cluster.engine.preview(program({ ...plainOptions, nodes: nodes() }))).summary).toEqual([]);
});

test('a new key has each step run once more, and gives no turn', async () => {
  await cluster.up(good);
  const { changes } = await cluster.engine.up(program({ ...good, sshKey: pulumi.secret('ANOTHER-KEY') }));
  expect(new Set(changes.map(({ changed }) => String(changed)))).toEqual(new Set(['connection']));
});
