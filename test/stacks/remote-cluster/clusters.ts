import * as pulumi from '@pulumi/pulumi';
import type { NodeArgs, RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';

/** A well-formed host key that nobody has. */
export const hostKey = (n: number): string => `ssh-ed25519 ${String(n).padStart(68, 'A')}`;

const key = hostKey;

/** A server at 10.0.0.n. */
export const server = (n: number, more: Partial<NodeArgs> = {}): NodeArgs => ({
  address: `10.0.0.${n}`,
  user: 'root',
  hostKey: key(n),
  roles: ['controlplane', 'etcd', 'worker'],
  ...more,
});

/** An agent at 10.0.0.n. */
export const agent = (n: number, more: Partial<NodeArgs> = {}): NodeArgs => server(n, { roles: ['worker'], ...more });

/** A cluster of K3s with one server, unless told otherwise. Several have an address in front of them. */
export function cluster(more: Partial<Extract<RemoteClusterArgs, { distribution: 'k3s' }>> = {}): RemoteClusterArgs {
  return {
    distribution: 'k3s',
    version: 'v1.30.4+k3s1',
    nodes: [server(1)],
    options: { registrationAddress: 'k8s.example.com' },
    sshKey: pulumi.secret('SSH-KEY-CANARY'),
    ...more,
  };
}

/** What the scripts of every plan answer with. */
export const answers = (): Readonly<Record<string, string>> => ({
  token: 'TOKEN-CANARY',
  kubeconfig: 'KUBECONFIG-CANARY',
  hostname: 'host',
  turn: 'turn',
});
