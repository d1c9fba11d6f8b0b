import * as pulumi from '@pulumi/pulumi';
import { RemoteCluster, type NodeArgs, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { agent, server } from './clusters';
import { plainTexts, record } from './recorder';

/** Stands in each secret of a cluster. */
export const CANARY = 'canary-3f9a61';

/** All forms in which a text could stand somewhere: as it is, and in base64 at any offset, twice too. */
export function forms(text: string): readonly string[] {
  const shifted = (inner: string) =>
    [0, 1, 2].map((shift) =>
      Buffer.from(' '.repeat(shift) + inner)
        .toString('base64')
        .slice(shift === 0 ? 0 : 4, -4),
    );
  const once = shifted(text);
  return [text, ...once, ...once.flatMap(shifted)];
}

const withBastion = (node: NodeArgs, sshKey: pulumi.Input<string> | undefined): NodeArgs => ({
  ...node,
  bastion: { address: '10.0.1.1', user: 'jump', hostKey: `ssh-ed25519 ${'B'.repeat(68)}`, ...(sshKey && { sshKey }) },
});

/** What a cluster is made of; a secret is marked as one or not. */
export interface ClusterParts {
  readonly distribution: 'rke2' | 'k3s';
  readonly servers: number;
  readonly agents: number;
  readonly bastion: boolean;
  readonly sshKey: pulumi.Input<string>;
  readonly bastionKey: pulumi.Input<string> | undefined;
  readonly sshKeyPassphrase: pulumi.Input<string> | undefined;
  readonly password: pulumi.Input<string>;
  /** Whether addresses are Outputs. */
  readonly outputs: boolean;
}

/** Such a cluster. */
export function clusterOf(parts: ClusterParts): RemoteClusterArgs {
  const { distribution, servers, agents, bastion, outputs } = parts;
  const { bastionKey, sshKeyPassphrase, password, sshKey } = parts;
  const plain = [
    ...Array.from({ length: servers }, (_, i) => server(i + 1)),
    ...Array.from({ length: agents }, (_, i) => agent(10 + i)),
  ].map((node) => (bastion ? withBastion(node, bastionKey) : node));
  const nodes = plain.map((node, i) =>
    outputs ? { ...node, name: `node-${i}`, address: pulumi.output(node.address) } : node,
  );
  const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };
  return {
    ...{ distribution, nodes, sshKey, sshKeyPassphrase },
    version: distribution === 'rke2' ? 'v1.30.4+rke2r1' : 'v1.30.4+k3s1',
    options: { registrationAddress: 'k8s.example.com', registries: [registry] },
    secrets: { 'infra/registry': { username: 'reader', password } },
  };
}

const answers = () => ({ token: `${CANARY}-token`, kubeconfig: `${CANARY}-kubeconfig`, hostname: 'host' });
const needles = [...forms(CANARY)];

/** Expects that no canary of a cluster stands in the open. */
export async function expectNoneInTheOpen(args: RemoteClusterArgs): Promise<void> {
  const found = await record(() => new RemoteCluster('prod', args).provider, { answers });
  expect(found.length).toBeGreaterThan(8);
  // It does get there, as a secret.
  expect(JSON.stringify(found.map(({ inputs }) => inputs))).toContain(CANARY);
  for (const { name, inputs } of found) {
    const texts = plainTexts(inputs);
    expect({ name, leaked: texts.filter((text) => needles.some((needle) => text.includes(needle))) }).toEqual({
      name,
      leaked: [],
    });
  }
}
