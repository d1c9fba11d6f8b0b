import { parseConfig } from '../../../stacks/config';
import { program } from '../../../stacks/program';
import { StandInMachines } from '../../constructs/provision/stand-in-machines';
import { Engine, MemoryCluster, commandProvider, memoryClusters, plain } from '../../support/pulumi-engine';
import type { ProviderPackage, Values } from '../../support/pulumi-engine';

/** The clusters that are made, by their names. */
const clusters = { prod: new MemoryCluster('https://prod.test'), next: new MemoryCluster('https://next.test') };
const other = new MemoryCluster('https://other.test');
const machines = new StandInMachines();

/** Commands that run nothing; the kubeconfig that they answer with is the name of their cluster. */
const commands: ProviderPackage = {
  name: 'command',
  configure: async () => ({
    ...(await commandProvider().configure({})),
    create: ({ inputs, name }) => Promise.resolve({ id: name, outputs: { ...inputs, stdout: said(name, inputs) } }),
    update: ({ inputs, name }) => Promise.resolve({ outputs: { ...inputs, stdout: said(name, inputs) } }),
    delete: () => Promise.resolve(),
  }),
};

/** The cluster of that name. */
function known(name: string): MemoryCluster {
  const found = Object.entries(clusters).find(([other]) => other === name);
  if (found === undefined) throw new Error(`there is no cluster ${name}`);
  return found[1];
}

function said(name: string, inputs: Values): string {
  if (inputs['create'] === undefined) return '';
  const [cluster = '', ...id] = name.split('/');
  const [script = '', ...values] = (plain(inputs['stdin']!) as string).split('\n');
  const answer = JSON.parse(machines.begin(id.join('/'), script, values.join('\n')).stdout) as { outputs: object };
  const kubeconfig = Buffer.from(MemoryCluster.kubeconfig({ it: known(cluster) })).toString('base64');
  return JSON.stringify({ ...answer, outputs: { ...answer.outputs, kubeconfig } });
}

/** On a cluster that stands. */
const onOther = (): object => {
  const values = { kinds: '["HelloApp"]', kubeconfig: `${MemoryCluster.kubeconfig({ it: other })}\n` };
  return { ...program(parseConfig({ values, secretKeys: new Set(['kubeconfig']) })) };
};

const stack = (name: string, address: string) => () => {
  const hostKey = `ssh-ed25519 ${'A'.repeat(68)}`;
  const cluster = {
    ...{ name, distribution: 'k3s', version: 'v1.30.4+k3s1' },
    nodes: [{ address, hostKey, user: 'root', roles: ['controlplane', 'etcd', 'worker'] }],
  };
  const values = {
    ...{ cluster: JSON.stringify(cluster), sshKey: '-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n' },
    ...{
      protectMachines: 'false',
      kinds: JSON.stringify(['HelloApp']),
      guardedNamespaces: JSON.stringify([{ name: 'shop', create: true }]),
    },
  };
  return { ...program(parseConfig({ values, secretKeys: new Set(['sshKey']) })) };
};

test('a cluster of another name gets a platform of its own', async () => {
  const { prod, next } = clusters;
  const engine = new Engine({ providers: [commands, memoryClusters(prod, next)] });
  await engine.up(stack('prod', '10.0.0.1'));
  const platform = prod.names;
  expect(platform).toEqual(
    expect.arrayContaining(['Namespace kindred-system', 'Deployment kindred-system/kindred-operator']),
  );
  expect((await engine.up(stack('prod', '10.0.0.1'))).summary).toEqual([]);

  await engine.up(stack('next', '10.0.0.2'));
  expect(next.names).toEqual(platform);
  // What the stack keeps when it goes, it keeps here too.
  expect(prod.names.filter((name) => !/^(CustomResourceDefinition|Namespace) /.test(name))).toEqual([]);
});

test('from a cluster that stands to one that is made, and back', async () => {
  const { prod } = clusters;
  const engine = new Engine({ providers: [commands, memoryClusters(prod, other)] });
  const stays = /^(CustomResourceDefinition|Namespace) /;
  const isInstalled = (cluster: MemoryCluster): boolean => cluster.names.some((name) => name.startsWith('Deployment '));
  await engine.up(onOther);
  expect([isInstalled(other), isInstalled(prod)]).toEqual([true, false]);
  for (const [program, to, from] of [
    [stack('prod', '10.0.0.1'), prod, other],
    [onOther, other, prod],
  ] as const) {
    await engine.up(program);
    expect(isInstalled(to)).toBe(true);
    expect(from.names.filter((name) => !stays.test(name))).toEqual([]);
    expect((await engine.up(program)).summary).toEqual([]);
  }
});
