import { parseArgs, type ParseArgsConfig } from 'node:util';
import { describeNameRule, nameProblem, type NameRule } from '../constructs/kube/names';
import { configFilesProblems, isImageReference } from '../constructs/operator';
import { DEFAULT_NAMESPACE } from '../constructs/platform';
import { UsageError } from './errors';

/** The parsed arguments of `kindred start`. */
export interface StartArguments {
  readonly command: 'start';
  /** End as soon as every object is Ready. */
  readonly once: boolean;
  /**
   * How long the objects may take to become Ready, in seconds, not counting the download or build of the
   * parts.
   */
  readonly timeoutSeconds: number;
  /** The API server's port; undefined: a free one. */
  readonly port: number | undefined;
  /** Port of the operator's metrics; 0: a free one. */
  readonly metricsPort: number;
  /** The user's own manifests. */
  readonly files: readonly string[];
  readonly samples: boolean;
  /** Namespace of the samples, and of the user's objects that set none. */
  readonly namespace: string;
  /**
   * The operator's log file; undefined: one in the data directory, which is removed when the command ends.
   */
  readonly logFile: string | undefined;
  readonly logLevel: string;
  /** What installs the platform; `auto`: Pulumi if there is one that works, else server-side apply. */
  readonly installer: 'auto' | 'pulumi' | 'apply';
  /** Run the provisioner too, for Cluster and Kubeconfig. */
  readonly provisioner: boolean;
}

/** The parsed arguments of `kindred synth`. */
export interface SynthArguments {
  readonly command: 'synth';
  readonly out: string;
  readonly image: string | undefined;
  readonly provisionerImage: string | undefined;
  readonly provisionerConfigSecret: string | undefined;
  readonly provisionerConfigFiles: Readonly<Record<string, string>> | undefined;
  readonly namespace: string;
  readonly samplesNamespace: string;
}

/** The parsed command line. */
type Arguments =
  | StartArguments
  | SynthArguments
  | { readonly command: 'run'; readonly rest: readonly string[] }
  | { readonly command: 'prepare' }
  | { readonly command: 'version' }
  | { readonly command: 'help'; readonly topic: string | undefined };

/** Default namespace of the samples. */
const SAMPLES_NAMESPACE = 'kindred-samples';

const installers = ['auto', 'pulumi', 'apply'] as const;

/**
 * The commands, as `kindred help` lists them.
 *
 * @testonly
 */
export const commands = ['start', 'synth', 'run', 'prepare', 'help'] as const;

/**
 * Parses the command line.
 *
 * @throws UsageError saying which argument is wrong and what it may be
 */
export function parseArguments(argv: readonly string[]): Arguments {
  const [command, ...rest] = argv;
  // The operator explains its own arguments.
  if (command !== 'run' && rest.some((word) => word === '--help' || word === '-h')) {
    return { command: 'help', topic: command };
  }
  switch (command) {
    case undefined:
    case '--help':
    case '-h':
      return { command: 'help', topic: undefined };
    case 'help':
      return { command: 'help', topic: rest[0] };
    case '--version':
      return { command: 'version' };
    case 'start':
      return startArguments(rest);
    case 'synth':
      return synthArguments(rest);
    case 'run':
      return { command: 'run', rest };
    case 'prepare':
      parseFlags(command, rest, {});
      return { command: 'prepare' };
    default:
      throw new UsageError(`"${command}" is no command; there are ${commands.join(', ')}. Try: kindred help`);
  }
}

function startArguments(argv: readonly string[]): StartArguments {
  const values = parseFlags('start', argv, {
    once: { type: 'boolean' },
    timeout: { type: 'string' },
    port: { type: 'string' },
    'metrics-port': { type: 'string' },
    file: { type: 'string', multiple: true, short: 'f' },
    'no-samples': { type: 'boolean' },
    namespace: { type: 'string', short: 'n' },
    'log-file': { type: 'string' },
    'log-level': { type: 'string' },
    installer: { type: 'string' },
    provisioner: { type: 'boolean' },
  });
  const files = values.file ?? [];
  const samples = values['no-samples'] !== true;
  if (!samples && files.length === 0) {
    throw new UsageError('--no-samples leaves nothing to run: name your own objects with --file=FILE');
  }
  return {
    command: 'start',
    once: values.once === true,
    timeoutSeconds: parseInteger('timeout', values.timeout ?? '180', 1, 86_400),
    port: values.port === undefined ? undefined : parseInteger('port', values.port, 1, 65_535),
    metricsPort: parseInteger('metrics-port', values['metrics-port'] ?? '0', 0, 65_535),
    files,
    samples,
    namespace: startNamespace(values.namespace),
    logFile: values['log-file'],
    logLevel: oneOf('log-level', values['log-level'] ?? 'info', ['error', 'warn', 'info', 'debug', 'trace']),
    installer: oneOf('installer', values.installer ?? 'auto', installers),
    provisioner: values.provisioner === true,
  };
}

function synthArguments(argv: readonly string[]): SynthArguments {
  const values = parseFlags('synth', argv, {
    out: { type: 'string' },
    image: { type: 'string' },
    'provisioner-image': { type: 'string' },
    'provisioner-config-secret': { type: 'string' },
    'provisioner-config-file': { type: 'string', multiple: true },
    namespace: { type: 'string' },
    'samples-namespace': { type: 'string' },
  });
  return {
    command: 'synth',
    out: folder('out', values.out ?? 'dist/manifests'),
    image: image('image', values.image),
    provisionerImage: image('provisioner-image', values['provisioner-image']),
    ...provisionerConfig(values),
    ...synthNamespaces(values.namespace, values['samples-namespace']),
  };
}

function provisionerConfig(values: {
  readonly 'provisioner-image'?: string;
  readonly 'provisioner-config-secret'?: string;
  readonly 'provisioner-config-file'?: readonly string[];
}): Pick<SynthArguments, 'provisionerConfigSecret' | 'provisionerConfigFiles'> {
  const [image, secret] = [values['provisioner-image'], values['provisioner-config-secret']];
  const files = values['provisioner-config-file'];
  if (secret !== undefined && image === undefined)
    throw flagError('provisioner-config-secret', secret, 'it is for the provisioner: name its --provisioner-image too');
  if (files !== undefined && secret === undefined)
    throw flagError('provisioner-config-file', files.join(), 'name the Secret too, with --provisioner-config-secret');
  return {
    provisionerConfigSecret: secretName('provisioner-config-secret', secret),
    provisionerConfigFiles: configFiles('provisioner-config-file', files),
  };
}

/** The namespace of the samples, other than the operator's, for which `start` has no flag. */
function startNamespace(given: string | undefined): string {
  const namespace = namespaceName('namespace', given ?? SAMPLES_NAMESPACE);
  if (namespace !== DEFAULT_NAMESPACE) return namespace;
  throw flagError('namespace', namespace, "it is the operator's own namespace: name another one for the samples");
}

function synthNamespaces(
  operators: string | undefined,
  samples: string | undefined,
): Pick<SynthArguments, 'namespace' | 'samplesNamespace'> {
  const namespace = namespaceName('namespace', operators ?? DEFAULT_NAMESPACE);
  const samplesNamespace = namespaceName('samples-namespace', samples ?? SAMPLES_NAMESPACE);
  if (namespace !== samplesNamespace) return { namespace, samplesNamespace };
  throw samples === undefined
    ? flagError(
        'namespace',
        namespace,
        'it is where the samples go: name another one, or other samples with --samples-namespace',
      )
    : flagError('samples-namespace', samples, "it is the operator's own namespace: name another one for the samples");
}

function parseFlags<O extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  argv: readonly string[],
  options: O,
): ReturnType<typeof parseArgs<{ args: string[]; options: O; strict: true }>>['values'] {
  try {
    return parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${why}. See: kindred help ${command}`, { cause: error });
  }
}

// The parsers of flag values. Each takes the flag's name without dashes and the given text, and throws a
// UsageError that names the flag, what was given, and what is allowed.

/** A whole number from `min` to `max`. */
function parseInteger(name: string, value: string, min: number, max: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= min && number <= max) return number;
  throw flagError(name, value, `it must be a whole number from ${min} to ${max}`);
}

/** One of some words. */
function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw flagError(name, value, `it may be one of ${allowed.join(', ')}`);
}

const NAMESPACE: NameRule = { format: 'dns-label' };

/** The name of a namespace. */
function namespaceName(name: string, value: string): string {
  if (nameProblem(value, NAMESPACE) === undefined) return value;
  throw flagError(name, value, `a namespace's name must be ${describeNameRule(NAMESPACE)}`);
}

const SECRET: NameRule = { format: 'dns-subdomain' };

/** The name of a Secret; undefined stays undefined. */
function secretName(name: string, value: string | undefined): string | undefined {
  if (value === undefined || nameProblem(value, SECRET) === undefined) return value;
  throw flagError(name, value, `a Secret's name must be ${describeNameRule(SECRET)}`);
}

/** Files by their paths, each given as `PATH=KEY`; undefined stays undefined. */
function configFiles(
  name: string,
  values: readonly string[] | undefined,
): Readonly<Record<string, string>> | undefined {
  if (values === undefined) return undefined;
  const files: Record<string, string> = {};
  for (const value of values) {
    const [, path = '', key = ''] = /^(.+)=(.+)$/.exec(value) ?? [];
    const [problem] = configFilesProblems(name, { [path]: key });
    if (path === '') throw flagError(name, value, 'give PATH=KEY, such as clusters/aws.yml=aws.yml');
    if (problem !== undefined) throw flagError(name, value, problem.message);
    if (Object.hasOwn(files, path)) throw flagError(name, value, 'this path was given before');
    files[path] = key;
  }
  return files;
}

/** The reference of a container image; undefined stays undefined. */
function image(name: string, value: string | undefined): string | undefined {
  if (value === undefined || isImageReference(value)) return value;
  throw flagError(name, value, 'it is no image: give one such as registry.example.com/name:tag, without spaces');
}

/** The path of a directory, which need not exist yet. */
function folder(name: string, value: string): string {
  if (value !== '') return value;
  throw flagError(name, value, 'it is empty: name a folder, or leave the flag out');
}

/** The error for an invalid value of a flag. */
function flagError(name: string, value: string, why: string): UsageError {
  return new UsageError(`--${name}=${value}: ${why}`);
}
