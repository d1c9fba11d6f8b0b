import { hasEffects } from '../constructs/kind/kind';
import { hasMultipleVersions } from '../constructs/operator';
import type { PlatformOperator } from '../constructs/platform';
import { CliError, UsageError } from './errors';
import { flagError, image, secretName } from './flags';
import { messageOf } from '../local/assets/errors';
import { programName, type GivenSettings, type Project, type ProjectOperator } from './project';

/** What a command line says of the platform. */
export interface PlatformArguments {
  /** Each `IMAGE`, or `OPERATOR=IMAGE`. */
  readonly images: readonly string[];
  /** `SECRET`, or `OPERATOR=SECRET`. */
  readonly configSecret: string | undefined;
  readonly configFiles: Readonly<Record<string, string>> | undefined;
  readonly namespace: string | undefined;
  readonly samplesNamespace: string | undefined;
  readonly certManager: boolean;
}

/** An operator of a project as it is to be installed. */
export interface InstalledOperator {
  readonly operator: ProjectOperator;
  readonly image: string;
  /** No image was named, so that `image` is in no registry. */
  readonly isDefaultImage: boolean;
  /** Whether it runs; the CRDs of its kinds are installed in any case. */
  readonly isInstalled: boolean;
  /** Secret with the files that objects may name. */
  readonly configSecretName: string | undefined;
  readonly configFiles: Readonly<Record<string, string>> | undefined;
}

/** The platform of a project: what `kindred synth` writes. */
export interface ProjectPlatform {
  readonly project: Project;
  readonly namespace: string;
  /** Namespace of the samples: created, with guardrails. */
  readonly samplesNamespace: string;
  readonly operators: readonly InstalledOperator[];
  /** cert-manager issues the certificates of the conversion webhooks. */
  readonly certManager: boolean;
}

/**
 * The platform that a command line asks for.
 *
 * @throws UsageError for an operator that the project does not have, or a namespace that is used twice
 */
export function projectPlatform(project: Project, args: PlatformArguments): ProjectPlatform {
  const images = new Map<string, string>();
  for (const given of args.images) {
    const [name, reference] = nameAndValue(given);
    const operator = operatorOf(project, 'image', given, name, ({ optional }) => !optional);
    if (images.has(operator.name)) throw flagError('image', given, `${operator.name} was given one before`);
    images.set(operator.name, image('image', reference));
  }
  const config = configSecretOf(project, args);
  if (config !== undefined && config.operator.optional && !images.has(config.operator.name)) {
    throw flagError(
      'config-secret',
      args.configSecret ?? '',
      `it is for ${config.operator.name}, which is installed on request only: name its image too, --image=${config.operator.name}=REF`,
    );
  }
  return {
    ...{ project, certManager: args.certManager },
    ...namespacesOf(project, args),
    operators: project.operators.map((operator) => ({
      operator,
      image: images.get(operator.name) ?? defaultImageOf(project, operator),
      isDefaultImage: !images.has(operator.name),
      isInstalled: !operator.optional || images.has(operator.name),
      configSecretName: config?.operator === operator ? config.name : undefined,
      configFiles: config?.operator === operator ? args.configFiles : undefined,
    })),
  };
}

/** The image of an operator if none is named. No registry has it: whoever installs makes it. */
export function defaultImageOf(project: Project, operator: ProjectOperator): string {
  // A tag has no place for the + of a build's metadata.
  return `${project.name}-${programName(project, operator)}:${project.version.replaceAll('+', '_')}`;
}

/**
 * What to do before the pods of a default image can start, since they would end in ImagePullBackOff.
 *
 * @param setting - how the image is named instead: `--image=REF`
 */
export function defaultImageAdvice(
  project: Project,
  { operator, image: reference }: InstalledOperator,
  setting: string,
): string {
  const build = `npx kindred build${isMeantAnyway(project, operator) ? '' : ` --operator=${operator.name}`}`;
  return (
    `no registry has ${reference}, so its pods cannot start: make the image with ${build} --push=REF and name it with ${setting}, ` +
    'or load it into the nodes and name it in the same way'
  );
}

/** Whether an operator is the one that is meant where none is named. */
export function isMeantAnyway({ operators }: Project, operator: ProjectOperator): boolean {
  return operators.every((one) => one.optional !== (one === operator));
}

/** Where a project is installed if no namespace is named. */
const defaultNamespaceOf = ({ name }: Project): string => `${name}-system`;
const defaultSamplesNamespaceOf = ({ name }: Project): string => `${name}-samples`;

function namespacesOf(
  project: Project,
  given: Pick<PlatformArguments, 'namespace' | 'samplesNamespace'>,
): Pick<ProjectPlatform, 'namespace' | 'samplesNamespace'> {
  const namespace = given.namespace ?? defaultNamespaceOf(project);
  const samplesNamespace = given.samplesNamespace ?? defaultSamplesNamespaceOf(project);
  if (namespace !== samplesNamespace) return { namespace, samplesNamespace };
  throw given.samplesNamespace === undefined
    ? flagError(
        'namespace',
        namespace,
        'it is where the samples go: name another one, or other samples with --samples-namespace',
      )
    : flagError(
        'samples-namespace',
        samplesNamespace,
        "it is the operator's own namespace: name another one for the samples",
      );
}

function configSecretOf(
  project: Project,
  { configSecret, configFiles }: PlatformArguments,
): { readonly operator: ProjectOperator; readonly name: string } | undefined {
  if (configSecret === undefined) {
    if (configFiles === undefined) return undefined;
    const files = Object.entries(configFiles).map((file) => file.join('='));
    throw flagError('config-file', files.join(), 'name the Secret too, with --config-secret');
  }
  const [name, secret] = nameAndValue(configSecret);
  const operator = operatorOf(project, 'config-secret', configSecret, name, ({ kinds }) => hasEffects(kinds));
  return { operator, name: secretName('config-secret', secret) };
}

/** `NAME=VALUE`, or `VALUE` alone. No value of the flags has a `=` in it. */
function nameAndValue(given: string): readonly [name: string | undefined, value: string] {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(given) ?? [];
  return value === undefined ? [undefined, given] : [name, value];
}

/**
 * The operator that `--operator` names, or the only one that is not optional.
 *
 * @throws UsageError when there is no such operator
 */
export function requiredOperator({ operators }: Project, name: string | undefined): ProjectOperator {
  const candidates = operators.filter((one) => (name === undefined ? !one.optional : one.name === name));
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) return only;
  const names = operators.map((one) => one.name).join(', ');
  throw name === undefined
    ? new UsageError(`say which operator, with --operator=NAME; there is ${names}`)
    : flagError('operator', name, `there is no such operator; there is ${names}`);
}

/** The operator that a flag names; if it names none, the only one that may be meant. */
function operatorOf(
  { operators }: Project,
  flag: string,
  given: string,
  name: string | undefined,
  mayBeMeant: (operator: ProjectOperator) => boolean,
): ProjectOperator {
  const candidates = name === undefined ? operators.filter(mayBeMeant) : operators.filter((one) => one.name === name);
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) return only;
  const names = operators.map((one) => one.name).join(', ');
  if (name !== undefined) throw flagError(flag, given, `there is no operator ${name}; there is ${names}`);
  throw candidates.length === 0
    ? flagError(flag, given, `no operator needs one. Name it if you mean one of ${names}: --${flag}=NAME=${given}`)
    : flagError(flag, given, `say for which operator, as --${flag}=NAME=${given}; there is ${names}`);
}

function madeSettings(settings: (given: GivenSettings) => PlatformOperator, given: GivenSettings): PlatformOperator {
  try {
    return settings(given);
  } catch (error) {
    throw new CliError(`the settings of the operator ${given.name} cannot be made: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Where the files of `--config-secret` are in a pod whose operator has no settings of its own. */
const CONFIG_DIRECTORY = '/etc/kindred/config';

/** An operator's entry in `Platform`. */
export function platformOperator(installed: InstalledOperator, namespace: string): PlatformOperator {
  const { operator, image: reference, configSecretName, configFiles } = installed;
  const own = { name: operator.name, image: reference, kinds: operator.kinds };
  const files = configFiles === undefined ? {} : { configFiles };
  if (typeof operator.settings === 'function') {
    const secret = configSecretName === undefined ? {} : { configSecretName };
    return { ...madeSettings(operator.settings, { ...own, namespace, ...secret, ...files }), ...own };
  }
  if (configSecretName === undefined) return { ...operator.settings, ...own };
  return {
    ...operator.settings,
    ...own,
    args: [...(operator.settings.args ?? []), `--config-dir=${CONFIG_DIRECTORY}`],
    configDirectory: {
      ...{ path: CONFIG_DIRECTORY, secretName: configSecretName },
      ...(configFiles === undefined ? {} : { files: configFiles }),
    },
  };
}

/**
 * @param context - of a cluster that `kindred dev` uses; undefined: the platform is written
 * @throws CliError when a kind has several versions and nobody issues the certificate of its conversion webhook
 */
export function assertConversion({ project, certManager }: ProjectPlatform, context?: string): void {
  const several = project.operators.flatMap(({ kinds }) => kinds).find(hasMultipleVersions);
  if (several === undefined || certManager) return;
  if (context !== undefined) {
    throw new CliError(
      `${several.kind} has several versions: the API server of context ${context} would have to call a conversion webhook on this machine, which it cannot reach. ` +
        'Leave --context out for a control plane on this machine, or install the platform where cert-manager is: kindred synth --cert-manager',
    );
  }
  throw new CliError(
    `${several.kind} has several versions, so that its operator needs a certificate for conversions: add --cert-manager where cert-manager is installed, or write a Platform with a "conversion" of your own`,
  );
}
