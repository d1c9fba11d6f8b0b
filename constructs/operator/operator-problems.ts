import type { Problem } from '../core/errors';
import { nameProblem } from '../core/names';
import { isQuantity } from '../core/quantity';
import { MIN_MEMORY_MIB } from './heap';
import { operatorDefaults } from './operator-props';
import type { OperatorDeploymentProps, OperatorSettings } from './operator-props';

/** In characters: leaves room for `-metrics`, since a Service's name has at most 63. */
export const MAX_OPERATOR_NAME = 50;

/** All that is wrong with the props of an operator, paths relative to them. */
export function operatorProblems(props: OperatorDeploymentProps): readonly Problem[] {
  return [
    ...named('name', props.name, { format: 'dns-1035-label', maxLength: MAX_OPERATOR_NAME }),
    ...named('namespace', props.namespace, { format: 'dns-label' }),
    ...namespaceListProblems('watchNamespaces', props.watchNamespaces),
    ...settingsProblems(props),
  ];
}

/** All that is wrong with how an operator is to run. */
export function settingsProblems(props: OperatorSettings): readonly Problem[] {
  const { image, kinds, replicas, metricsPort, leaseName, scratch, configDirectory } = props;
  return [
    ...(isImage(image) ? [] : [problem('image', `"${image}" is no image: give one such as registry/name@sha256:...`)]),
    ...(kinds.length > 0 ? [] : [problem('kinds', 'it is empty: name the kinds that the operator runs')]),
    ...duplicates(kinds.map(({ crdName }) => crdName)).map((name) => problem('kinds', `${name} stands twice`)),
    ...integer('replicas', replicas, 0, 10),
    ...integer('metricsPort', metricsPort, 1024, 65535),
    ...integer('terminationGracePeriodSeconds', props.terminationGracePeriodSeconds, 1, 86_400),
    ...(leaseName === undefined ? [] : named('leaseName', leaseName, { format: 'dns-subdomain' })),
    ...quantity('cpuRequest', props.cpuRequest),
    ...memoryProblems(props),
    ...(scratch === undefined || scratch.path.startsWith('/')
      ? []
      : [problem('scratch.path', `"${scratch.path}" must be absolute`)]),
    ...(configDirectory === undefined || configDirectory.path.startsWith('/')
      ? []
      : [problem('configDirectory.path', `"${configDirectory.path}" must be absolute`)]),
    ...(configDirectory === undefined
      ? []
      : named('configDirectory.secretName', configDirectory.secretName, { format: 'dns-subdomain' })),
    ...configFilesProblems('configDirectory.files', configDirectory?.files),
  ];
}

/** What is wrong with files by their paths, each with its key in a Secret. Source: Kubernetes' validation of a volume's `items`. */
export function configFilesProblems(path: string, files: Readonly<Record<string, string>> = {}): readonly Problem[] {
  return Object.entries(files).flatMap(([file, key]) => [
    ...(isLocalPath(file)
      ? []
      : [problem(path, `"${file}" must be a path within the directory, such as "clusters/aws.yml", without ".."`)]),
    ...(/^[-._A-Za-z0-9]{1,253}$/.test(key) && !key.startsWith('..') && key !== '.'
      ? []
      : [problem(path, `"${key}", for "${file}", is no key of a Secret: letters, digits, "-", "_" and "." only`)]),
  ]);
}

function isLocalPath(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.startsWith('..') && !path.split('/').includes('..');
}

/** Whether a text can be the reference of an image: anything without spaces. The registry decides what exists. */
export function isImage(text: string): boolean {
  return /^\S+$/.test(text);
}

/** What is wrong with a list that confines to namespaces. */
export function namespaceListProblems(path: string, namespaces: readonly string[] | undefined): readonly Problem[] {
  if (namespaces === undefined) return [];
  return [
    ...(namespaces.length > 0 ? [] : [problem(path, 'it is empty: name one or more, or leave it out for all')]),
    ...namespaces.flatMap((name, i) => named(`${path}[${i}]`, name, { format: 'dns-label' })),
    ...duplicates(namespaces).map((name) => problem(path, `"${name}" stands twice`)),
  ];
}

function memoryProblems(props: OperatorSettings): readonly Problem[] {
  const limit = props.memoryLimitMiB ?? operatorDefaults.memoryLimitMiB;
  const found = [
    ...integer('memoryLimitMiB', props.memoryLimitMiB, MIN_MEMORY_MIB, 65_536),
    ...integer('memoryRequestMiB', props.memoryRequestMiB, 1, 65_536),
    ...integer('scratch.sizeMiB', props.scratch?.sizeMiB, 1, 65_536),
  ];
  if ((props.memoryRequestMiB ?? operatorDefaults.memoryRequestMiB) > limit) {
    found.push(problem('memoryRequestMiB', `it exceeds memoryLimitMiB, which is ${limit}`));
  }
  if (props.scratch !== undefined && limit - props.scratch.sizeMiB < MIN_MEMORY_MIB) {
    found.push(
      problem('scratch.sizeMiB', `it leaves less than ${MIN_MEMORY_MIB} of memoryLimitMiB (${limit}): raise the limit`),
    );
  }
  return found;
}

function named(path: string, value: string, rule: Parameters<typeof nameProblem>[1]): readonly Problem[] {
  const message = nameProblem(value, rule);
  return message === undefined ? [] : [problem(path, message)];
}

function quantity(path: string, value: string | undefined): readonly Problem[] {
  const ok: boolean = value === undefined || isQuantity(value);
  return ok ? [] : [problem(path, `"${value ?? ''}" is no quantity; write 50m or 1`)];
}

function integer(path: string, value: number | undefined, min: number, max: number): Problem[] {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return [];
  return [problem(path, `${value} must be an integer from ${min} to ${max}`)];
}

function duplicates(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, i) => values.indexOf(value) !== i))];
}

function problem(path: string, message: string): Problem {
  return { path, message };
}
