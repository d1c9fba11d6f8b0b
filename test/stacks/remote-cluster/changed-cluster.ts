import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { StandInMachines } from '../../provision/stand-in-machines';
import {
  DeploymentError,
  Engine,
  commandProvider,
  plain,
  type ProviderPackage,
  type Values,
} from '../../support/pulumi-engine';
import { agent, cluster, server } from './clusters';

/** What of a cluster a test says. */
export type Args = Partial<Extract<RemoteClusterArgs, { distribution: 'k3s' }>>;

const ADDRESS = { registrationAddress: 'k8s.example.com' };
const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };

/** A cluster of a server and an agent, unless told otherwise. */
export const program = (more: Args) => (): void => {
  new RemoteCluster('prod', cluster({ nodes: [server(1), agent(2)], ...more }));
};

/** A cluster with a registry that has that password. */
export const withPassword = (password: string): Args => ({
  options: { ...ADDRESS, registries: [registry] },
  secrets: { 'infra/registry': { username: 'reader', password: pulumi.secret(password) } },
});

const commandsOn = (machines: StandInMachines): ProviderPackage => ({
  name: 'command',
  configure: async () => ({
    ...(await commandProvider().configure({})),
    create: ({ inputs, name }) => Promise.resolve({ id: name, outputs: ran(machines, name, inputs, 'create') }),
    update: ({ inputs, name }) => Promise.resolve({ outputs: ran(machines, name, inputs, 'update') }),
    delete: () => Promise.resolve(),
  }),
});

function ran(machines: StandInMachines, name: string, inputs: Values, line: 'create' | 'update'): Values {
  const nothing = { ...inputs, stdout: '', stderr: '' };
  if (inputs[line] === undefined) return nothing;
  const [script = '', ...values] = (plain(inputs['stdin']!) as string).split('\n');
  const { ok, stdout } = machines.begin(name.replace('prod/', ''), script, values.join('\n'));
  if (!ok) throw new Error('the service is not up');
  return { ...nothing, stdout };
}

/** A cluster that is changed, on machines on which a step can be made to fail. */
export class ChangedCluster {
  readonly machines = new StandInMachines();
  readonly engine = new Engine({ providers: [commandsOn(this.machines)] });

  /** @returns what was begun on the machines, in order */
  async up(more: Args): Promise<readonly string[]> {
    await this.engine.up(program(more));
    return this.machines.takeBegun();
  }

  /** As {@link up}, which fails at that step. */
  async failedUp(more: Args, failing: string): Promise<readonly string[]> {
    this.machines.failing = failing;
    await expect(this.engine.up(program(more))).rejects.toThrow(DeploymentError);
    this.machines.failing = undefined;
    return this.machines.takeBegun();
  }
}

/** A cluster that can be made. */
export const good: Args = withPassword('right-password');

/** The same, with an option that makes an installation fail. */
export const badOption: Args = {
  ...good,
  options: { ...good.options, extraArgs: { kubelet: { 'no-such-flag': 'x' } } },
};
