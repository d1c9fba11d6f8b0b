import { configKeys } from './keys';
import type { ConfigKeyName, ConfigValues } from './keys';
import { keyRemedy } from './problems';
import type { ConfigProblem } from './problems';

interface SpanningProblem extends ConfigProblem {
  /** The keys that it follows from. */
  readonly about: readonly ConfigKeyName[];
}

/**
 * What is wrong with several keys together.
 *
 * @param wrong the keys that are wrong by themselves: nothing more is said of them
 */
export function spanningProblems(values: ConfigValues, wrong: ReadonlySet<string>): readonly ConfigProblem[] {
  return [...targetProblems(values), ...namespaceProblems(values), ...filesProblems(values), ...secretProblems(values)]
    .filter(({ about }) => !about.some((name) => wrong.has(name)))
    .map(({ key, message, remedy }) => ({ key, message, remedy }));
}

const remove = (path: string): string =>
  `pulumi config rm ${path.includes('[') ? `--path 'kindred:${path}'` : `kindred:${path}`}`;
const set = (name: ConfigKeyName): string => keyRemedy(name, configKeys[name]);

/** Which cluster the platform goes to must be said once, and be said: the current context of a shell changes. */
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

function filesProblems({ provisionerConfigFiles, provisionerConfigSecret }: ConfigValues): readonly SpanningProblem[] {
  if (provisionerConfigFiles === undefined || provisionerConfigSecret !== undefined) return [];
  const about = ['provisionerConfigFiles', 'provisionerConfigSecret'] as const;
  const message = 'no Secret is named that these files are in';
  return [{ key: 'provisionerConfigFiles', about, message, remedy: set('provisionerConfigSecret') }];
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
