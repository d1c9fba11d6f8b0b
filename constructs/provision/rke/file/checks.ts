import type { Problem } from '../../../kube/errors';
import { isObject } from '../../../kube/kube-object';
import { versionProblem } from '../versions';
import type { FileNode } from './nodes';

type Config = Readonly<Record<string, unknown>>;

/** What is wrong with a configuration beyond its single fields. */
export function configProblems(config: Config, nodes: readonly FileNode[], sshKey: boolean): Problem[] {
  const version = config['kubernetes_version'];
  const problem = typeof version === 'string' && version !== '' ? versionProblem(version) : undefined;
  return [
    ...(problem === undefined ? [] : [{ path: 'kubernetes_version', message: problem }]),
    ...duplicateProblems(nodes),
    ...roleProblems(config, nodes),
    ...(sshKey ? [] : keyProblems(config)),
    ...drainProblems(config),
  ];
}

/** What is worth a person's look, though it is taken. */
export function configWarnings(config: Config): string[] {
  if ((config['kubernetes_version'] ?? '') !== '') return [];
  return [
    'kubernetes_version is not given, so each release of rke takes its own default: a newer rke upgrades the cluster, ' +
      'and the default of the last ones is only there for subscribers; set it',
  ];
}

function duplicateProblems(nodes: readonly FileNode[]): Problem[] {
  return (['address', 'hostnameOverride'] as const).flatMap((field) =>
    nodes.flatMap((node, i) => {
      const first = nodes.findIndex((other) => other[field] === node[field]);
      if (node[field] === undefined || first === i) return [];
      return [{ path: `nodes[${i}]`, message: `is the same machine as nodes[${first}]: ${node[field]}` }];
    }),
  );
}

function roleProblems(config: Config, nodes: readonly FileNode[]): Problem[] {
  if (nodes.length === 0) return [];
  const has = (role: FileNode['roles'][number]): boolean => nodes.some(({ roles }) => roles.includes(role));
  const etcd = field(field(config, 'services'), 'etcd');
  const external = isObject(etcd) && etcd['external_urls'] !== undefined;
  return [
    ...(has('controlplane') ? [] : [{ path: 'nodes', message: 'no node has the role controlplane' }]),
    ...(has('etcd') || external ? [] : [{ path: 'nodes', message: 'no node has the role etcd' }]),
  ];
}

/** Without a path RKE reads `~/.ssh/id_rsa`, which is not the user's there. */
function keyProblems(config: Config): Problem[] {
  if (config['ssh_key_path'] !== undefined) return [];
  const nodes: readonly unknown[] = Array.isArray(config['nodes']) ? config['nodes'] : [];
  const bastion = config['bastion_host'];
  return [
    ...nodes.map((node, i): [string, unknown] => [`nodes[${i}]`, node]),
    ...((field(bastion, 'address') ?? '') === '' ? [] : [['bastion_host', bastion] as [string, unknown]]),
  ]
    .filter(([, machine]) => field(machine, 'ssh_key_path') === undefined)
    .map(([path]) => ({
      path,
      message: 'has no SSH key: give sshKeySecretRef, or ssh_key_path with a file in the configured directory',
    }));
}

/** RKE ends with a nil pointer there. Source: getDrainHelper of RKE 1.6 (services/node_util.go). */
function drainProblems(config: Config): Problem[] {
  const strategy = field(config, 'upgrade_strategy');
  if (field(strategy, 'drain') !== true || isObject(field(strategy, 'node_drain_input'))) return [];
  return [
    {
      path: 'upgrade_strategy.node_drain_input',
      message: 'is needed with drain: true, or RKE crashes in the middle of an upgrade; give at least timeout: 120',
    },
  ];
}

function field(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
