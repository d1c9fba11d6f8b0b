import { InvalidObjectError } from '../../constructs/core/errors';
import type { Problem } from '../../constructs/core/errors';
import { isObject } from '../../constructs/core/is-object';
import { unknownFields } from '../../constructs/core/unknown-fields';
import { validateObject } from '../../constructs/core/validate';
import { Cluster } from '../../constructs/kinds';
import { clusterInput, clusterProblems } from '../../constructs/provision';
import type { RemoteClusterArgs } from '../components/remote-cluster/args';
import { SSH_KEY } from '../components/remote-cluster/description';
import { lookupProblems, outlined } from '../components/remote-cluster/plan';
import { ownProblems } from '../components/remote-cluster/preflight';
import { checkedFields, withoutNulls } from './cluster-fields';
import type { ClusterFields, ClusterProblem } from './cluster-fields';
import { removalRemedy, secretRemedy, valueRemedy } from './config-error';
import type { ConfigProblem } from './config-error';
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

type Values = Pick<ConfigValues, 'cluster' | 'clusterSecrets' | 'hostKeyChecking' | 'sshKeyPassphrase'>;

/** The cluster that the configuration speaks of, checked as the API server, the static preflight and the component itself would. */
export function clusterConfig(values: Values): Checked {
  if (Object.keys(values.cluster).length === 0) return { config: undefined, problems: [] };
  const checked = checkedFields(withoutNulls(values.cluster));
  if ('problems' in checked) {
    return { config: undefined, problems: checked.problems.map(configProblem) };
  }
  const { name, ...rest } = checked.fields;
  // The checks below are of the schemas that the type is inferred from.
  const args = rest as unknown as PlainClusterArgs;
  const told: RemoteClusterArgs = { ...args, ...toldBesides(values) };
  const found = [
    ...(values.hostKeyChecking ? hostKeyProblems(checked.fields) : []),
    ...ownProblems(told).map(ownProblem),
    ...specProblems(checked.fields),
  ];
  const problems = found.length > 0 ? found : secretProblems(name, told, values);
  return { config: problems.length === 0 ? { name, args } : undefined, problems };
}

/** What the component is told besides `cluster`, as far as it is checked here. */
function toldBesides({ sshKeyPassphrase, hostKeyChecking }: Values) {
  return {
    sshKey: '',
    ...(sshKeyPassphrase === '' ? {} : { sshKeyPassphrase }),
    hostKeyChecking: hostKeyChecking ? ('pinned' as const) : ('skip-insecure' as const),
  };
}

/** What would be found while connecting, said before. */
function hostKeyProblems({ nodes }: ClusterFields): readonly ConfigProblem[] {
  return nodes.flatMap((node, i): readonly ConfigProblem[] => {
    const bastion = isObject(node['bastion']) ? node['bastion'] : undefined;
    const machines: readonly (readonly [string, Login, string])[] = [
      [`nodes[${i}].hostKey`, node, bastion === undefined ? '' : `ssh ${portOf(bastion)}${userAt(bastion)} `],
      ...(bastion === undefined ? [] : [[`nodes[${i}].bastion.hostKey`, bastion, ''] as const]),
    ];
    return machines
      .filter(([, { hostKey }]) => hostKey === undefined)
      .map(([path, machine, through]) => ({
        key: `cluster.${path}`,
        message:
          'is required: without it, whoever sits in between can take the machine over. Compare it with what the machine itself ' +
          'says; kindred:hostKeyChecking false does without',
        remedy: `pulumi config set --path 'kindred:cluster.${path}' "$(${through}ssh-keyscan -t ed25519 ${portOf(machine)}${hostOf(machine)} | cut -d' ' -f2-)"`,
      }));
  });
}

/** How a machine is reached, not checked yet. */
type Login = Readonly<Record<string, unknown>>;

const portOf = ({ port }: Login): string => (typeof port !== 'number' || port === 22 ? '' : `-p ${port} `);
const hostOf = ({ address }: Login): string => (typeof address === 'string' ? address : 'ADDRESS');
const userAt = (machine: Login): string =>
  `${typeof machine['user'] === 'string' ? machine['user'] : 'USER'}@${hostOf(machine)}`;

/** A problem that the component sees in its own arguments, by the key that sets it. */
function ownProblem({ path, message }: Problem): ConfigProblem {
  if (path === 'sshKeyPassphrase') return { key: path, message, remedy: 'pulumi config rm kindred:sshKeyPassphrase' };
  const isMachine = /^(lost|removable)\[/.test(path);
  return configProblem({ kind: isMachine ? 'unknown-machine' : 'wrong-value', path, message });
}

function specProblems(fields: ClusterFields): readonly ConfigProblem[] {
  const { name, distribution, version, nodes, options, installer } = fields;
  const spec = {
    ...{ distribution, version, nodes: nodes.map(withoutName), sshKeySecretRef: SSH_KEY },
    ...(options === undefined ? {} : { [distribution]: options }),
    // A misspelled field would be left out, and the public script run as root with nothing to check it by.
    ...(installer === undefined ? {} : { installer }),
  };
  const beyond = new Set(unknownFields(Cluster.schema.spec, spec, 'spec').map(({ path }) => path));
  return problemsOfSpec(name, spec).map(({ path, message }) =>
    configProblem({
      kind: beyond.has(path) ? 'unknown-field' : 'wrong-value',
      path: pathIn(path, distribution),
      message,
    }),
  );
}

/** What the schema says, and, when it has nothing to say, what the plans do. */
function problemsOfSpec(name: string, spec: object): readonly Problem[] {
  const { apiVersion, kind } = Cluster;
  try {
    const valid = validateObject(Cluster, { apiVersion, kind, metadata: { name }, spec });
    return clusterProblems(clusterInput(name, valid.spec));
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return error.problems;
  }
}

/** The name is for Pulumi's state, not for the cluster. */
function withoutName(node: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(node).filter(([field]) => field !== 'name'));
}

/** What the options refer to and `clusterSecrets` does not have. Only a plan tells which values are read. */
function secretProblems(name: string, args: RemoteClusterArgs, { clusterSecrets }: Values): readonly ConfigProblem[] {
  const planned = outlined(name, args);
  if ('problems' in planned) {
    return planned.problems.map((problem) => configProblem({ ...problem, kind: 'wrong-value' }));
  }
  const isGiven: Parameters<typeof lookupProblems>[1] = ({ namespace = '', name: secret, key }) =>
    (namespace === SSH_KEY.namespace && secret === SSH_KEY.name) ||
    clusterSecrets[`${namespace}/${secret}`]?.[key] !== undefined;
  return lookupProblems(planned.outline, isGiven).map(({ path, message }) => {
    // The component has under `secrets` what the configuration keeps apart from `cluster`, encrypted.
    const key = path.replace(/^secrets(?=\[)/, 'clusterSecrets');
    return { key, message, remedy: secretRemedy(key) };
  });
}

/** A path in the object that was checked, as the configuration has it. */
function pathIn(path: string, distribution: string): string {
  if (path === 'metadata.name') return 'name';
  const inner = path.replace(/^spec\.?/, '');
  return inner === distribution || /^[.[]/.test(inner.slice(distribution.length))
    ? inner.replace(distribution, 'options')
    : inner;
}

function configProblem({ kind, path, message }: ClusterProblem): ConfigProblem {
  const key = path === '' ? 'cluster' : `cluster.${path}`;
  return { key, message, remedy: remedies[kind](key) };
}

const remedies: Readonly<Record<ClusterProblem['kind'], (key: string) => string>> = {
  'unknown-field': removalRemedy,
  'unknown-machine': removalRemedy,
  'wrong-value': valueRemedy,
};
