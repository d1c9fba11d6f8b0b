import type { z } from 'zod';
import { host, ipAddress, linuxUser, nodeName } from '../../constructs/kinds/cluster-fields';
import { MAX_NODES, nodeRole } from '../../constructs/kinds/cluster-node';
import type { Problem } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';
import type { NodeRole } from '../cluster/cluster-input';
import { clusterYmlRules } from './cluster-yml-fields';
import { ClusterYmlWalker, type FoundSecret, type PathOptions, type ReferencedFile } from './cluster-yml-walker';
import { rkeVersionProblem } from './rke-problems';
import type { YamlValue, YamlObject } from './yaml';

/** Options of {@link readClusterYml}. */
export interface ReadOptions extends PathOptions {
  /** A key from a Secret replaces all SSH keys in the file. @default false */
  readonly sshKey?: boolean;
}

/** The result of reading a user's cluster.yml. */
export interface ClusterYmlFile {
  /** All problems. If there are any, RKE must not get the file. No message contains a value of the file. */
  readonly problems: readonly Problem[];
  /** What a user should check. */
  readonly warnings: readonly string[];
  /**
   * The accepted part of the file, without private SSH keys, and with every path relative to the configured
   * directory. **It contains other secrets.**
   */
  readonly config: YamlObject;
  /** The same for people to read, without secrets. */
  readonly redactedClusterYml: string;
  /**
   * Files that RKE is to read. Each must be opened inside the configured directory, with no link leading out
   * of it.
   */
  readonly files: readonly ReferencedFile[];
  /** Fields that contain secrets. */
  readonly secrets: readonly FoundSecret[];
  /** The texts of the secrets in `config`: **secret**, and to be masked in logs. */
  readonly secretTexts: readonly string[];
  readonly nodes: readonly FileNode[];
  /** @default none */
  readonly bastion?: FileBastion;
  /** @default RKE's own */
  readonly kubernetesVersion?: string;
}

/** A machine that a cluster.yml names. */
export interface FileNode {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly roles: readonly NodeRole[];
  readonly internalAddress?: string;
  readonly hostnameOverride?: string;
}

/** The bastion that a cluster.yml names. */
export type FileBastion = Pick<FileNode, 'address' | 'port' | 'user'>;

/**
 * Reads a parsed cluster.yml by the rules of its accepted fields; it never throws.
 *
 * Assumptions: the parser rejects duplicate keys in a mapping, more than one document, and custom tags. It
 * may resolve aliases, since their expansion is bounded here. Merge keys (`<<`) that it does not resolve are
 * rejected as unknown fields.
 */
export function readClusterYml(value: unknown, options: ReadOptions = {}): ClusterYmlFile {
  const { sshKey = false } = options;
  const walk = new ClusterYmlWalker(options);
  const taken = walk.readFields(value, clusterYmlRules, '');
  const config = (taken?.value ?? {}) as YamlObject;
  const problems = [...walk.problems];
  const machines = machinesOf(config, problems);
  const keys = walk.secrets.filter(({ kind }) => kind === 'sshKey');
  problems.push(
    ...configProblems(config, machines.nodes, sshKey || keys.length > 0),
    ...(sshKey ? [] : keys.map(({ field }) => ({ path: field, message: KEY_IN_FILE }))),
  );
  const version = config['kubernetes_version'];
  return {
    problems,
    warnings: configWarnings(config),
    config,
    redactedClusterYml: pretty(taken?.redacted ?? {}),
    files: sshKey ? walk.files.filter(({ purpose }) => purpose === 'addon') : walk.files,
    secrets: walk.secrets,
    secretTexts: [...walk.secretTexts],
    ...machines,
    ...(typeof version === 'string' ? { kubernetesVersion: version } : {}),
  };
}

const KEY_IN_FILE =
  'holds a private key; put it into a Secret, name that as sshKeySecretRef, take the key out of the file, and replace it on the ' +
  'machines, since it has been read by whoever could read the file';

const pretty = (document: YamlValue): string => `${JSON.stringify(document, null, 2)}\n`;

/**
 * The machines of a configuration that has passed the rules. Their values that scripts and logins use must
 * also pass the schemas of the typed fields.
 */
export function machinesOf(
  config: Readonly<Record<string, unknown>>,
  problems: Problem[],
): { nodes: FileNode[]; bastion?: FileBastion } {
  const list: readonly unknown[] = Array.isArray(config['nodes']) ? config['nodes'] : [];
  if (list.length === 0) problems.push({ path: 'nodes', message: 'names no machine; add at least one' });
  if (list.length > MAX_NODES) {
    problems.push({ path: 'nodes', message: `names ${list.length} machines; ${MAX_NODES} are taken` });
  }
  const nodes = list.slice(0, MAX_NODES).flatMap((node, i) => nodeOf(node, `nodes[${i}]`, problems) ?? []);
  const found = config['bastion_host'];
  const wanted = isObject(found) && !isMissing(found['address']);
  const bastion = wanted ? loginOf(found, 'bastion_host', problems) : undefined;
  return bastion === undefined ? { nodes } : { nodes, bastion };
}

function nodeOf(node: unknown, path: string, problems: Problem[]): FileNode | undefined {
  if (!isObject(node)) return undefined;
  const login = loginOf(node, path, problems);
  const roles = rolesOf(node['role'], path, problems);
  const internalAddress = optional(node, 'internal_address', ipAddress(), path, problems);
  const hostnameOverride = optional(node, 'hostname_override', nodeName(), path, problems);
  if (login === undefined || roles === undefined) return undefined;
  return {
    ...login,
    roles,
    ...(internalAddress === undefined ? {} : { internalAddress }),
    ...(hostnameOverride === undefined ? {} : { hostnameOverride }),
  };
}

function loginOf(fields: Record<string, unknown>, path: string, problems: Problem[]): FileBastion | undefined {
  const address = optional(fields, 'address', host(), path, problems);
  const user = optional(fields, 'user', linuxUser(), path, problems);
  const port = portOf(fields['port'], path, problems);
  for (const [name, value] of Object.entries({ address, user })) {
    if (value === undefined && isMissing(fields[name]))
      problems.push({ path: `${path}.${name}`, message: 'is missing' });
  }
  return address === undefined || user === undefined || port === undefined ? undefined : { address, port, user };
}

function optional(
  fields: Record<string, unknown>,
  name: string,
  schema: z.ZodString,
  path: string,
  problems: Problem[],
): string | undefined {
  const value = fields[name];
  if (isMissing(value)) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const why = result.error.issues.map(({ message }) => message).join('; ');
  problems.push({ path: `${path}.${name}`, message: why });
  return undefined;
}

function portOf(value: unknown, path: string, problems: Problem[]): number | undefined {
  if (isMissing(value)) return 22;
  const port = typeof value === 'string' && /^[1-9][0-9]{0,4}$/.test(value) ? Number(value) : 0;
  if (port >= 1 && port <= 65535) return port;
  problems.push({ path: `${path}.port`, message: 'must be a port, 1 to 65535' });
  return undefined;
}

function rolesOf(value: unknown, path: string, problems: Problem[]): readonly NodeRole[] | undefined {
  const roles = nodeRole.array().min(1).safeParse(value);
  if (roles.success) return roles.data;
  problems.push({ path: `${path}.role`, message: 'must be a list of controlplane, etcd and worker, at least one' });
  return undefined;
}

const isMissing = (value: unknown): boolean => value === undefined || value === '';

type Config = Readonly<Record<string, unknown>>;

/** Problems of a configuration beyond single fields. */
function configProblems(config: Config, nodes: readonly FileNode[], sshKey: boolean): Problem[] {
  const version = config['kubernetes_version'];
  const problem = typeof version === 'string' && version !== '' ? rkeVersionProblem(version) : undefined;
  return [
    ...(problem === undefined ? [] : [{ path: 'kubernetes_version', message: problem }]),
    ...duplicateProblems(nodes),
    ...roleProblems(config, nodes),
    ...(sshKey ? [] : keyProblems(config)),
    ...drainProblems(config),
  ];
}

/** What a user should check, though it is accepted. */
function configWarnings(config: Config): string[] {
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

/**
 * Each machine needs a key path: without one RKE reads `~/.ssh/id_rsa` of its own host, which is not the
 * user's.
 */
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

/**
 * RKE crashes with a nil pointer when `drain` has no inputs. Source: getDrainHelper of RKE 1.6
 * (services/node_util.go).
 */
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
