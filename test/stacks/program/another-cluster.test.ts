import { parseConfig } from '../../../stacks/config';
import { program } from '../../../stacks/program';
import { StandInMachines } from '../../constructs/provision/stand-in-machines';
import { Engine, commandProvider, kubernetesProvider, plain } from '../../support/pulumi-engine';
import type { ProviderPackage, Values } from '../../support/pulumi-engine';

/** What stands on each cluster, by its kubeconfig. */
const clusters = new Map<string, Set<string>>();
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

function said(name: string, inputs: Values): string {
  if (inputs['create'] === undefined) return '';
  const [cluster = '', ...id] = name.split('/');
  const [script = '', ...values] = (plain(inputs['stdin']!) as string).split('\n');
  const answer = JSON.parse(machines.begin(id.join('/'), script, values.join('\n')).stdout) as { outputs: object };
  const kubeconfig = Buffer.from(`current-context: ${cluster}\n`).toString('base64');
  return JSON.stringify({ ...answer, outputs: { ...answer.outputs, kubeconfig } });
}

/** Clusters in memory; which of them is meant is decided as by the real provider. */
const kubernetes: ProviderPackage = {
  ...kubernetesProvider(),
  configure: ({ kubeconfig }) => {
    const [, cluster = 'nowhere'] = /current-context: (\w+)/.exec(plain(kubeconfig!) as string) ?? [];
    const objects = clusters.get(cluster) ?? new Set<string>();
    clusters.set(cluster, objects);
    return {
      create: ({ name, inputs }) => {
        objects.add(name);
        return Promise.resolve({ id: name, outputs: inputs });
      },
      update: ({ inputs }) => Promise.resolve({ outputs: inputs }),
      delete: ({ name }) => {
        objects.delete(name);
        return Promise.resolve();
      },
    };
  },
};

const stack = (name: string, address: string) => () => {
  const hostKey = `ssh-ed25519 ${'A'.repeat(68)}`;
  const cluster = {
    ...{ name, distribution: 'k3s', version: 'v1.30.4+k3s1' },
    nodes: [{ address, hostKey, user: 'root', roles: ['controlplane', 'etcd', 'worker'] }],
  };
  const values = {
    ...{ cluster: JSON.stringify(cluster), sshKey: '-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n' },
    ...{ protectMachines: 'false', kinds: JSON.stringify(['HelloApp']), guardedNamespaces: JSON.stringify(['shop']) },
  };
  return { ...program(parseConfig({ values, secretKeys: new Set(['sshKey']) })) };
};

test('a cluster of another name gets a platform of its own', async () => {
  const engine = new Engine({ providers: [commands, kubernetes] });
  await engine.up(stack('prod', '10.0.0.1'));
  const platform = [...(clusters.get('prod') ?? [])].sort();
  expect(platform).toEqual(expect.arrayContaining(['kindred/namespace', 'kindred/operators/operator/deployment']));
  expect((await engine.up(stack('prod', '10.0.0.1'))).summary).toEqual([]);

  await engine.up(stack('next', '10.0.0.2'));
  expect([...(clusters.get('next') ?? [])].sort()).toEqual(platform);
  // What the stack keeps when it goes, it keeps here too.
  expect([...(clusters.get('prod') ?? [])].filter((name) => name.includes('deployment'))).toEqual([]);
});
