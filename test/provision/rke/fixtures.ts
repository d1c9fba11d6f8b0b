import type { Node, RkeInput } from '../../../provision';
import { nodes as nodesSchema } from '../../../constructs/kinds/cluster-node';
import { rkeOptions } from '../../../constructs/kinds/cluster-options';

/** A machine with its defaults. */
export function node(fields: Readonly<Record<string, unknown>> = {}): Node {
  const [only] = nodesSchema.parse([
    { address: '10.0.0.1', user: 'rke', roles: ['controlplane', 'etcd', 'worker'], ...fields },
  ]);
  return only!;
}

/** A typed input; options go through their schema. */
export function rkeInput(fields: Partial<Omit<RkeInput, 'options'>> & { readonly options?: unknown } = {}): RkeInput {
  return {
    name: 'prod',
    distribution: 'rke',
    version: 'v1.30.5-rancher1-1',
    nodes: [node()],
    sshKey: { namespace: 'machines', name: 'ssh', key: 'ssh-privatekey' },
    ...fields,
    options: rkeOptions.parse(fields.options ?? {}),
  };
}
