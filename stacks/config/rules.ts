import type { ConfigProblem } from './config-error';
import { quantityProblems } from './guarded';
import { remedyOf } from './keys';
import type { ConfigKeyName, ConfigValues } from './keys';

/**
 * What is wrong with several keys together.
 *
 * @param wrong the keys that are wrong by themselves: nothing more is said of them
 */
export function spanningProblems(values: ConfigValues, wrong: ReadonlySet<string>): readonly ConfigProblem[] {
  const spanning = [
    ...targetProblems(values),
    ...namespaceProblems(values),
    ...filesProblems(values),
    ...secretProblems(values),
  ];
  const standing = spanning.filter(({ about }) => !about.some((name) => wrong.has(name) || wrongInside(name, wrong)));
  return [...standing.map(({ key, message, remedy }) => ({ key, message, remedy })), ...quantityProblems(values)];
}

interface SpanningProblem extends ConfigProblem {
  /** The keys that it follows from. */
  readonly about: readonly string[];
}

function wrongInside(name: string, wrong: ReadonlySet<string>): boolean {
  return [...wrong].some((key) => key.startsWith(`${name}.`));
}

const hasFields = (value: object): boolean => Object.keys(value).length > 0;
const hasCluster = ({ cluster }: ConfigValues): boolean => hasFields(cluster);

/** Which cluster the platform goes to must be said once, and be said: the current context of a shell changes. */
function targetProblems(values: ConfigValues): readonly SpanningProblem[] {
  const { kubeconfig, context } = values;
  const about: readonly ConfigKeyName[] = ['kubeconfig', 'context', 'cluster'];
  if (hasCluster(values)) {
    return (['kubeconfig', 'context'] as const)
      .filter((key) => values[key] !== '')
      .map((key) => ({
        ...{ key, about, message: 'the platform goes to the cluster that kindred:cluster makes; set only one of them' },
        remedy: `pulumi config rm kindred:${key}`,
      }));
  }
  if (kubeconfig !== '' || context !== '') return [];
  return [
    {
      ...{ key: 'context', about, message: 'no cluster is named: set kubeconfig or context, or cluster to make one' },
      remedy: 'pulumi config set kindred:context "$(kubectl config current-context)"',
    },
  ];
}

function filesProblems({ provisionerConfigFiles, provisionerConfigSecret }: ConfigValues): readonly SpanningProblem[] {
  if (!hasFields(provisionerConfigFiles) || provisionerConfigSecret !== '') return [];
  return [
    {
      key: 'provisionerConfigFiles',
      about: ['provisionerConfigFiles', 'provisionerConfigSecret'],
      message: 'no Secret is named that these files are in',
      ...remedyOf('provisionerConfigSecret'),
    },
  ];
}

function namespaceProblems({ namespace, samples, samplesNamespace, guardedNamespaces, watchNamespaces }: ConfigValues) {
  const problems: SpanningProblem[] = [];
  const about = ['namespace', 'samples', 'samplesNamespace', 'guardedNamespaces', 'watchNamespaces'];
  const names = guardedNamespaces.map((entry) => (typeof entry === 'string' ? entry : entry.name));
  const key = 'guardedNamespaces';
  names.forEach((name, i) => {
    if (names.indexOf(name) !== i) {
      const message = `"${name}" stands twice; its guardrails are one set`;
      problems.push({ key, about, message, remedy: `pulumi config rm --path 'kindred:${key}[${i}]'` });
    }
    const entry = guardedNamespaces[i];
    if (typeof entry === 'object' && entry.create === true && name === namespace) {
      const message = `"${name}" is created as the operators' namespace; leave create out`;
      problems.push({ key, about, message, remedy: `pulumi config rm --path 'kindred:${key}[${i}].create'` });
    }
  });
  if (!samples) return problems;
  const other = 'pulumi config set kindred:samplesNamespace kindred-samples';
  if (samplesNamespace === namespace) {
    const message = "it is the operators' namespace; samples need one of their own";
    problems.push({ key: 'samplesNamespace', about, message, remedy: other });
  }
  if (watchNamespaces.length > 0 && !watchNamespaces.includes(samplesNamespace)) {
    const message = `no operator watches "${samplesNamespace}": name it in watchNamespaces, or do without samples`;
    problems.push({ key: 'samplesNamespace', about, message, remedy: 'pulumi config set kindred:samples false' });
  }
  return problems;
}

function secretProblems(values: ConfigValues): readonly SpanningProblem[] {
  const { sshKey, sshKeyPassphrase, clusterSecrets } = values;
  if (hasCluster(values)) {
    const about = ['sshKey'];
    const message = 'is required: the machines of kindred:cluster are reached with it';
    return sshKey === '' ? [{ key: 'sshKey', about, message, ...remedyOf('sshKey') }] : [];
  }
  const given = {
    sshKey: sshKey !== '',
    sshKeyPassphrase: sshKeyPassphrase !== '',
    clusterSecrets: hasFields(clusterSecrets),
  };
  return Object.entries(given)
    .filter(([, isGiven]) => isGiven)
    .map(([key]) => ({
      ...{ key, about: ['cluster', key], message: 'there is no kindred:cluster that it could be for' },
      remedy: `pulumi config rm kindred:${key}`,
    }));
}
