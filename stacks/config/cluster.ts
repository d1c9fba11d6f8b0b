import { InvalidObjectError } from '../../constructs/core/errors';
import { isObject } from '../../constructs/core/is-object';
import { validateObject } from '../../constructs/core/validate';
import { Cluster } from '../../constructs/kinds';
import { clusterInput, clusterProblems } from '../../constructs/provision';
import type { RemoteClusterArgs } from '../components/remote-cluster/args';
import type { ConfigProblem } from './config-error';
import { removalRemedy, valueRemedy } from './config-error';
import type { ConfigValues } from './keys';

/** A cluster to make before the platform is installed on it: what a RemoteCluster is told, without its secrets. */
export interface ClusterConfig {
  /** Name of the cluster: a DNS subdomain of at most 63 characters. */
  readonly name: string;
  readonly args: PlainClusterArgs;
}

type SecretArgs = 'sshKey' | 'sshKeyPassphrase' | 'secrets' | 'hostKeyChecking' | 'protect' | 'clusterName';

type Plain<T> = T extends unknown ? Omit<T, SecretArgs> : never;

/** The arguments of a RemoteCluster that stand in the configuration under `cluster`. */
export type PlainClusterArgs = Plain<RemoteClusterArgs>;

interface Checked {
  readonly config: ClusterConfig | undefined;
  readonly problems: readonly ConfigProblem[];
}

/** Fields of `cluster` that the RemoteCluster itself looks at. */
const OWN_FIELDS = ['name', 'options', 'installer', 'dialAttempts', 'removable', 'lost'];
/** Fields of `cluster` that a Cluster's spec has too. */
const SPEC_FIELDS = ['distribution', 'version', 'nodes'];

/** Stands for the key, which the configuration has elsewhere, while the rest is checked. */
const SSH_KEY = { namespace: 'kindred', name: 'ssh', key: 'ssh-privatekey' };

/** The cluster that the configuration speaks of, checked as the API server and the static preflight would. */
export function clusterConfig(values: Pick<ConfigValues, 'cluster' | 'hostKeyChecking'>): Checked {
  const { cluster } = values;
  if (Object.keys(cluster).length === 0) return { config: undefined, problems: [] };
  const problems = [...fieldProblems(cluster), ...hostKeyProblems(values)];
  const { name, ...args } = cluster;
  const found = problems.length === 0 ? specProblems(String(name), cluster) : problems;
  // It has just been checked against the schemas that the type is inferred from.
  const config = { name: String(name), args: args as unknown as PlainClusterArgs };
  return { config: found.length === 0 ? config : undefined, problems: found };
}

function fieldProblems(cluster: Readonly<Record<string, unknown>>): readonly ConfigProblem[] {
  const known = [...OWN_FIELDS, ...SPEC_FIELDS];
  const unknown = Object.keys(cluster).filter((field) => !known.includes(field));
  const missing = ['name', ...SPEC_FIELDS].filter((field) => !(field in cluster));
  const notText = ['name', 'distribution', 'version'].filter(
    (field) => field in cluster && typeof cluster[field] !== 'string',
  );
  return [
    ...unknown.map((field) => problem(field, `${NO_FIELD} of it; it has ${known.join(', ')}`)),
    ...missing.map((field) => problem(field, 'is required')),
    ...notText.map((field) => problem(field, 'it must be a text')),
    ...(isList(cluster['nodes'] ?? [])
      ? []
      : [problem('nodes', 'it must be a list of objects with address and roles')]),
    ...(isObject(cluster['installer'] ?? {})
      ? []
      : [
          problem(
            'installer',
            'it must be an object with url or path, sha256 and artifacts, as far as they are needed',
          ),
        ]),
  ];
}

function isList(value: unknown): value is readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) && value.every((item) => isObject(item));
}

/** What would be found while connecting, said before. */
function hostKeyProblems({ cluster, hostKeyChecking }: Pick<ConfigValues, 'cluster' | 'hostKeyChecking'>) {
  const nodes = cluster['nodes'];
  if (!hostKeyChecking || !isList(nodes)) return [];
  return nodes.flatMap((node, i): readonly ConfigProblem[] => {
    const { address, bastion } = node;
    const machines: readonly (readonly [string, unknown, unknown])[] = [
      [`nodes[${i}].hostKey`, node['hostKey'], address],
      ...(isObject(bastion) ? [[`nodes[${i}].bastion.hostKey`, bastion['hostKey'], bastion['address']] as const] : []),
    ];
    return machines
      .filter(([, hostKey]) => hostKey === undefined)
      .map(([path, , host]) => ({
        key: `cluster.${path}`,
        message:
          'is required: without it, whoever sits in between can take the machine over. Compare it with what the machine itself ' +
          'says; kindred:hostKeyChecking false does without',
        remedy: `pulumi config set --path 'kindred:cluster.${path}' "$(ssh-keyscan -t ed25519 ${String(host)} | cut -d' ' -f2-)"`,
      }));
  });
}

function specProblems(name: string, cluster: Readonly<Record<string, unknown>>): readonly ConfigProblem[] {
  const { apiVersion, kind } = Cluster;
  const { distribution, version, nodes, options, installer } = cluster;
  const plainNodes = isList(nodes) ? nodes.map(withoutName) : nodes;
  const spec = {
    ...{ distribution, version, nodes: plainNodes, sshKeySecretRef: SSH_KEY },
    ...(options === undefined ? {} : { [String(distribution)]: options }),
    // A misspelled field would be left out, and the public script run as root with nothing to check it by.
    ...(installer === undefined ? {} : { installer }),
  };
  const pathOf = (path: string): string => pathIn(path, String(distribution));
  try {
    const valid = validateObject(Cluster, { apiVersion, kind, metadata: { name }, spec });
    const found = clusterProblems(clusterInput(name, valid.spec));
    return found.map(({ path, message }) => problem(pathOf(path), message));
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return error.problems.map(({ path, message }) => problem(pathOf(path), message));
  }
}

/** The name is for Pulumi's state, not for the cluster. */
function withoutName(node: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(node).filter(([field]) => field !== 'name'));
}

/** A path in the object that was checked, as the configuration has it. */
function pathIn(path: string, distribution: string): string {
  if (path === 'metadata.name') return 'name';
  const inner = path.replace(/^spec\.?/, '');
  return inner === distribution || /^[.[]/.test(inner.slice(distribution.length))
    ? inner.replace(distribution, 'options')
    : inner;
}

/** How the message of a field that must go begins, here and in what the schema says. */
const NO_FIELD = 'is no field';

function problem(path: string, message: string): ConfigProblem {
  const key = path === '' ? 'cluster' : `cluster.${path}`;
  return { key, message, remedy: message.startsWith(NO_FIELD) ? removalRemedy(key) : valueRemedy(key) };
}
