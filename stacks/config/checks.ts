import { unknownFields } from '../../constructs/kind/schema/structural-schema';
import { validateObject } from '../../constructs/kind/validate';
import { Cluster } from '../../constructs/kinds';
import { InvalidObjectError, type Problem } from '../../constructs/kube/errors';
import { clusterInput, clusterProblems } from '../../provision';
import { SSH_KEY, toArgumentPaths, type RemoteClusterArgs } from '../remote-cluster/args';
import { unresolvedSecretProblems, planOutline } from '../remote-cluster/plan';
import { componentProblems, unpinnedHosts } from '../remote-cluster/validate';
import { configKeys, type ClusterFields, type ConfigKeyName, type ConfigValues } from './keys';
import { keyRemedy, removalRemedy, secretRemedy, valueRemedy, type ConfigProblem } from './problems';

interface SpanningProblem extends ConfigProblem {
  /** The keys that cause it. */
  readonly about: readonly ConfigKeyName[];
}

/**
 * Problems that span several keys of the configuration.
 *
 * @param wrong the keys that are wrong by themselves: no further problem with them is reported
 */
export function spanningProblems(values: ConfigValues, wrong: ReadonlySet<string>): readonly ConfigProblem[] {
  return [...targetProblems(values), ...namespaceProblems(values), ...filesProblems(values), ...secretProblems(values)]
    .filter(({ about }) => !about.some((name) => wrong.has(name)))
    .map(({ key, message, remedy }) => ({ key, message, remedy }));
}

const remove = (path: string): string =>
  `pulumi config rm ${path.includes('[') ? `--path 'kindred:${path}'` : `kindred:${path}`}`;
const set = (name: ConfigKeyName): string => keyRemedy(name, configKeys[name]);

/** The configuration must name exactly one cluster, since the current context of a shell changes. */
function targetProblems({ kubeconfig, context, cluster }: ConfigValues): readonly SpanningProblem[] {
  const about = ['kubeconfig', 'context', 'cluster'] as const;
  const given = Object.entries({ kubeconfig, context }).filter(([, value]) => value !== undefined);
  if (cluster !== undefined) {
    const message = 'the platform goes to the cluster that kindred:cluster makes; set only one of them';
    return given.map(([key]) => ({ key, about, message, remedy: remove(key) }));
  }
  if (given.length > 0) return [];
  const message = 'no cluster is named: set kubeconfig or context, or cluster to make one';
  const remedy = 'pulumi config set kindred:context "$(kubectl config current-context)"';
  return [{ key: 'context', about, message, remedy }];
}

function namespaceProblems(values: ConfigValues): readonly SpanningProblem[] {
  const { namespace, samples, samplesNamespace, guardedNamespaces, watchNamespaces } = values;
  const problems: SpanningProblem[] = [];
  const about = ['namespace', 'samples', 'samplesNamespace', 'guardedNamespaces', 'watchNamespaces'] as const;
  const add = (key: string, message: string, remedy: string) => problems.push({ key, about, message, remedy });
  const names = guardedNamespaces.map((entry) => (typeof entry === 'string' ? entry : entry.name));
  guardedNamespaces.forEach((entry, i) => {
    const [key, name] = [`guardedNamespaces[${i}]`, names[i] ?? ''];
    if (names.indexOf(name) !== i) add(key, `"${name}" stands twice; its guardrails are one set`, remove(key));
    if (typeof entry === 'object' && entry.create === true && name === namespace) {
      add(
        `${key}.create`,
        `"${name}" is created as the operators' namespace; leave create out`,
        remove(`${key}.create`),
      );
    }
  });
  if (!samples) return problems;
  if (samplesNamespace === namespace) {
    add('samplesNamespace', "it is the operators' namespace; samples need one of their own", set('samplesNamespace'));
  }
  if (watchNamespaces?.includes(samplesNamespace) === false) {
    const message = `no operator watches "${samplesNamespace}": name it in watchNamespaces, or do without samples`;
    add('samplesNamespace', message, 'pulumi config set kindred:samples false');
  }
  return problems;
}

function filesProblems({ provisionerConfigFiles, provisionerConfigSecret }: ConfigValues): readonly SpanningProblem[] {
  if (provisionerConfigFiles === undefined || provisionerConfigSecret !== undefined) return [];
  const about = ['provisionerConfigFiles', 'provisionerConfigSecret'] as const;
  const message = 'no Secret is named that these files are in';
  return [{ key: 'provisionerConfigFiles', about, message, remedy: set('provisionerConfigSecret') }];
}

function secretProblems({
  cluster,
  sshKey,
  sshKeyPassphrase,
  clusterSecrets,
}: ConfigValues): readonly SpanningProblem[] {
  if (cluster !== undefined) {
    const message = 'is required: the machines of kindred:cluster are reached with it';
    return sshKey === undefined ? [{ key: 'sshKey', about: ['sshKey'], message, remedy: set('sshKey') }] : [];
  }
  const secrets = Object.keys(clusterSecrets).length === 0 ? undefined : clusterSecrets;
  const given = Object.entries({ sshKey, sshKeyPassphrase, clusterSecrets: secrets });
  const message = 'there is no kindred:cluster that it could be for';
  return given
    .filter(([, value]) => value !== undefined)
    .map(([key]) => ({ key, about: ['cluster', key as ConfigKeyName], message, remedy: remove(key) }));
}

/**
 * A cluster to create before the platform is installed on it: the arguments of a RemoteCluster, without its
 * secrets.
 */
export interface ClusterConfig {
  /** Name of the cluster: a DNS subdomain of at most 63 characters. */
  readonly name: string;
  readonly args: PlainClusterArgs;
}

type SecretArgs = 'sshKey' | 'sshKeyPassphrase' | 'secrets' | 'hostKeyChecking' | 'protect' | 'clusterName';
type Plain<T> = T extends unknown ? Omit<T, SecretArgs> : never;

/** The arguments of a RemoteCluster that the configuration has under `cluster`. */
type PlainClusterArgs = Plain<RemoteClusterArgs>;

interface Checked {
  readonly config: ClusterConfig | undefined;
  readonly problems: readonly ConfigProblem[];
}

/**
 * The configured cluster, checked as the API server, the static preflight and the component itself check it.
 */
export function clusterConfig(values: ConfigValues): Checked {
  const { cluster, hostKeyChecking, sshKeyPassphrase } = values;
  if (cluster === undefined) return { config: undefined, problems: [] };
  const { name, ...rest } = cluster;
  // The type is inferred from the schemas that the checks below use.
  const args = rest as unknown as PlainClusterArgs;
  const told: RemoteClusterArgs = {
    ...args,
    sshKey: '',
    ...(sshKeyPassphrase === undefined ? {} : { sshKeyPassphrase }),
    hostKeyChecking: hostKeyChecking ? 'pinned' : 'skip-insecure',
  };
  const found = [
    ...(hostKeyChecking ? hostKeyProblems(cluster) : []),
    ...componentProblems(told).map(ownProblem),
    ...specProblems(cluster),
  ];
  const problems = found.length > 0 ? found : missingSecretProblems(name, told, values);
  return { config: problems.length === 0 ? { name, args } : undefined, problems };
}

/** The path in the configuration of a path below `cluster`. */
const under = (path: string): string => (path === '' ? 'cluster' : `cluster.${path}`);

function problem({ path, message }: Problem, remedy: (key: string) => string = valueRemedy): ConfigProblem {
  return { key: under(path), message, remedy: remedy(under(path)) };
}

/** How a machine is reached over SSH, not checked yet. */
type Login = Readonly<Record<string, unknown>>;

const portOf = ({ port }: Login): string => (typeof port !== 'number' || port === 22 ? '' : `-p ${port} `);
const hostOf = ({ address }: Login): string => (typeof address === 'string' ? address : 'ADDRESS');
const userOf = ({ user }: Login): string => (typeof user === 'string' ? user : 'USER');

/** Reports missing host keys before any connection, with the command that reads the key from the machine. */
function hostKeyProblems({ nodes }: ClusterFields): readonly ConfigProblem[] {
  const message =
    'is required: without it, whoever sits in between can take the machine over. Compare it with what the machine itself says; ' +
    'kindred:hostKeyChecking false does without';
  return unpinnedHosts({ nodes: nodes as unknown as RemoteClusterArgs['nodes'] }).map(({ path }) => {
    const node: Login = nodes[Number(/\d+/.exec(path)?.[0])] ?? {};
    const bastion = node['bastion'] as Login | undefined;
    const isOfBastion = bastion !== undefined && path.includes('bastion');
    const through =
      bastion === undefined || isOfBastion ? '' : `ssh ${portOf(bastion)}${userOf(bastion)}@${hostOf(bastion)} `;
    const machine = isOfBastion ? bastion : node;
    const scan = `${through}ssh-keyscan -t ed25519 ${portOf(machine)}${hostOf(machine)} | cut -d' ' -f2-`;
    return problem({ path, message }, (key) => `pulumi config set --path 'kindred:${key}' "$(${scan})"`);
  });
}

/** A problem with an argument of the component, as a problem with the key that sets it. */
function ownProblem(found: Problem): ConfigProblem {
  const { path, message } = found;
  if (path === 'sshKeyPassphrase') return { key: path, message, remedy: 'pulumi config rm kindred:sshKeyPassphrase' };
  return problem(found, /^(lost|removable)\[/.test(path) ? removalRemedy : valueRemedy);
}

function specProblems(fields: ClusterFields): readonly ConfigProblem[] {
  const { name, distribution, version, nodes, options, installer } = fields;
  const spec = {
    // A node's name is only used in Pulumi's state.
    ...{ distribution, version, nodes: nodes.map((node) => ({ ...node, name: undefined })), sshKeySecretRef: SSH_KEY },
    ...(options === undefined ? {} : { [distribution]: options }),
    // Checked here so that a misspelled field, such as the checksum, is not dropped: the script runs as root.
    ...(installer === undefined ? {} : { installer }),
  };
  const plain = JSON.parse(JSON.stringify(spec)) as typeof spec;
  const beyond = new Set(unknownFields(Cluster.schema.spec, plain, 'spec').map(({ path }) => path));
  return problemsOfSpec(name, plain).flatMap((found) =>
    toArgumentPaths([found], distribution).map(({ path, message }) =>
      problem(
        { path: path === 'clusterName' ? 'name' : path, message },
        beyond.has(found.path) ? removalRemedy : valueRemedy,
      ),
    ),
  );
}

/** The problems that the schema finds or, if there are none, those that the plans find. */
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

/**
 * Secrets that the options refer to and that `clusterSecrets` lacks. Only a plan tells which values are read.
 */
function missingSecretProblems(name: string, args: RemoteClusterArgs, values: ConfigValues): readonly ConfigProblem[] {
  const planned = planOutline(name, args);
  if ('problems' in planned) return planned.problems.map((found) => problem(found));
  const isGiven: Parameters<typeof unresolvedSecretProblems>[1] = ({ namespace = '', name: secret, key }) =>
    (namespace === SSH_KEY.namespace && secret === SSH_KEY.name) ||
    values.clusterSecrets[`${namespace}/${secret}`]?.[key] !== undefined;
  return unresolvedSecretProblems(planned.outline, isGiven).map(({ path, message }) => {
    // What the component calls `secrets`, the configuration keeps encrypted, apart from `cluster`.
    const key = path.replace(/^secrets(?=\[)/, 'clusterSecrets');
    return { key, message, remedy: secretRemedy(key) };
  });
}
