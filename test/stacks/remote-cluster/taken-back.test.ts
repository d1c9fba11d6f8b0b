import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster } from '../../../stacks/components/remote-cluster';
import type { RemoteClusterArgs } from '../../../stacks/components/remote-cluster';
import { StandInMachines } from '../../constructs/provision/stand-in-machines';
import { DeploymentError, Engine, commandProvider, plain } from '../../support/pulumi-engine';
import type { ProviderPackage, Values } from '../../support/pulumi-engine';
import { agent, cluster, server } from './clusters';

/** Changes that fail halfway and are taken back: Pulumi keeps what a Command that failed was before, and so finds nothing changed. */
jest.setTimeout(300_000);

let machines: StandInMachines;
let engine: Engine;

const commands: ProviderPackage = {
  name: 'command',
  configure: async () => ({
    ...(await commandProvider().configure({})),
    create: ({ inputs, name }) => Promise.resolve({ id: name, outputs: ran(name, inputs, 'create') }),
    update: ({ inputs, name }) => Promise.resolve({ outputs: ran(name, inputs, 'update') }),
    delete: () => Promise.resolve(),
  }),
};

function ran(name: string, inputs: Values, line: 'create' | 'update'): Values {
  const nothing = { ...inputs, stdout: '', stderr: '' };
  if (inputs[line] === undefined) return nothing;
  const [script = '', ...values] = (plain(inputs['stdin']!) as string).split('\n');
  const { ok, stdout } = machines.begin(name.replace('prod/', ''), script, values.join('\n'));
  if (!ok) throw new Error('the service is not up');
  return { ...nothing, stdout };
}

type Args = Partial<Extract<RemoteClusterArgs, { distribution: 'k3s' }>>;
const ADDRESS = { registrationAddress: 'k8s.example.com' };
const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };
const program = (more: Args) => () => {
  new RemoteCluster('prod', cluster({ nodes: [server(1), agent(2)], ...more }));
};
const withPassword = (password: string): Args => ({
  options: { ...ADDRESS, registries: [registry] },
  secrets: { 'infra/registry': { username: 'reader', password: pulumi.secret(password) } },
});

/** What was begun on the machines, in order. */
async function up(more: Args): Promise<readonly string[]> {
  await engine.up(program(more));
  return machines.takeBegun();
}

async function failedUp(more: Args, failing: string): Promise<readonly string[]> {
  machines.failing = failing;
  await expect(engine.up(program(more))).rejects.toThrow(DeploymentError);
  machines.failing = undefined;
  return machines.takeBegun();
}

beforeEach(() => {
  machines = new StandInMachines();
  engine = new Engine({ providers: [commands] });
});

const good: Args = withPassword('right-password');
const badOption: Args = { ...good, options: { ...good.options, extraArgs: { kubelet: { 'no-such-flag': 'x' } } } };

test.each([
  ['an option', badOption],
  ['a secret', withPassword('wrong-password')],
])('%s that made an installation fail', async (_, bad) => {
  await up(good);
  const before = new Map(machines.made);
  expect(await failedUp(bad, '10.0.0.1/install')).not.toContain('10.0.0.1/ready');
  const back = await up(good);
  // On the machine whose turn never came as well: what was begun there is not known.
  for (const id of ['10.0.0.1/install', '10.0.0.1/ready', '10.0.0.2/ready']) expect(back).toContain(id);
  expect(machines.made).toEqual(before);
  expect(await up(good)).toEqual([]);
});

test('a change that failed in the draining, which the last step undoes', async () => {
  await up(good);
  await failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/drain');
  expect(await up(good)).toEqual(expect.arrayContaining(['10.0.0.1/install', '10.0.0.1/ready']));
});

test('a change that failed twice, and another that failed in between', async () => {
  await up(good);
  const before = new Map(machines.made);
  await failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/install');
  await failedUp(good, '10.0.0.1/ready');
  await failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/preflight');
  await failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/ready');
  expect(await up(good)).toEqual(expect.arrayContaining(['10.0.0.1/install', '10.0.0.1/ready']));
  expect(machines.made).toEqual(before);
});

test('a preview of what stands shows nothing, of what failed all that will run, and of one machine more only that', async () => {
  await up(good);
  expect((await engine.preview(program(good))).summary).toEqual([]);
  await failedUp(badOption, '10.0.0.1/install');
  const { changes } = await engine.preview(program(good));
  const names = changes.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['prod/10.0.0.1/install', 'prod/10.0.0.1/ready']));
  expect(names.filter((name) => name.endsWith('/removal'))).toEqual([]);
  await up(good);
  const more = await up({ ...good, nodes: [server(1), agent(2), agent(3)] });
  expect(more.filter((id) => /^10\.0\.0\.[12]\//.test(id) && !id.endsWith('/preflight'))).toEqual([]);
  expect(more).toContain('10.0.0.3/ready');
});

test('a preview shows nothing either where only some addresses are Outputs', async () => {
  const nodes = () => [server(1, { name: 'first', address: pulumi.output('10.0.0.1') }), agent(2)];
  const plainOptions: Args = { options: {} };
  await up({ ...plainOptions, nodes: nodes() });
  expect((await engine.preview(program({ ...plainOptions, nodes: nodes() }))).summary).toEqual([]);
});

test('a new key has each step run once more, and gives no turn', async () => {
  await up(good);
  const { changes } = await engine.up(program({ ...good, sshKey: pulumi.secret('ANOTHER-KEY') }));
  expect(new Set(changes.map(({ changed }) => String(changed)))).toEqual(new Set(['connection']));
});
