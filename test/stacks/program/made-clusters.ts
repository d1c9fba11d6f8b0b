import { parseConfig } from '../../../stacks/config/parse';
import { program } from '../../../stacks/program';
import { StandInMachines } from '../../provision/stand-in-machines';
import { MemoryCluster, commandProvider, plain, type ProviderPackage, type Values } from '../../support/pulumi-engine';

/** The clusters that are made, by their names. */
export const clusters = { prod: new MemoryCluster('https://prod.test'), next: new MemoryCluster('https://next.test') };
/** A cluster that stands. */
export const other = new MemoryCluster('https://other.test');
const machines = new StandInMachines();

/** Commands that run nothing; the kubeconfig that they answer with is the name of their cluster. */
export const commands: ProviderPackage = {
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

/** A stack on {@link other}. */
export const onOther = (): object => {
  const values = { kinds: '["HelloApp"]', kubeconfig: `${MemoryCluster.kubeconfig({ it: other })}\n` };
  return { ...program(parseConfig({ values, secretKeys: new Set(['kubeconfig']) })) };
};

/** A stack that makes a cluster of that name. */
export const stack = (name: string, address: string) => (): object => {
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
