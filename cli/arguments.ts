import path from 'node:path';
import { DEFAULT_NAMESPACE } from '../constructs/platform';
import { buildArguments, type BuildArguments } from './build-arguments';
import { UsageError } from './errors';
import {
  configFiles,
  flagError,
  folder,
  image,
  namespaceName,
  oneOf,
  parseFlags,
  parseInteger,
  secretName,
} from './flags';

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
  /** Run pods in containers, and the operator as its Deployment. */
  readonly pods: boolean;
}

/** The parsed arguments of `kindred synth`. */
export interface SynthArguments {
  readonly command: 'synth';
  readonly format: 'yaml' | 'helm';
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
  | BuildArguments
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
export const commands = ['start', 'synth', 'build', 'run', 'prepare', 'help'] as const;

/**
 * Parses the command line.
 *
 * @param dist - folder in which `synth` writes by default
 * @throws UsageError saying which argument is wrong and what it may be
 */
export function parseArguments(argv: readonly string[], dist = 'dist'): Arguments {
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
      return synthArguments(rest, dist);
    case 'build':
      return buildArguments(rest);
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
    pods: { type: 'boolean' },
  });
  const files = values.file ?? [];
  const samples = values['no-samples'] !== true;
  if (!samples && files.length === 0) {
    throw new UsageError('--no-samples leaves nothing to run: name your own objects with --file=FILE');
  }
  if (values.pods === true) {
    const given = (['metrics-port', 'log-file', 'log-level'] as const).find((flag) => values[flag] !== undefined);
    if (given !== undefined) {
      throw new UsageError(`--${given} is for an operator that is a process: with --pods it runs as its Deployment`);
    }
    if (values.provisioner === true) {
      throw new UsageError('--provisioner does not go with --pods: a pod reaches no machines from here');
    }
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
    pods: values.pods === true,
  };
}

function synthArguments(argv: readonly string[], dist: string): SynthArguments {
  const values = parseFlags('synth', argv, {
    format: { type: 'string' },
    out: { type: 'string' },
    image: { type: 'string' },
    'provisioner-image': { type: 'string' },
    'provisioner-config-secret': { type: 'string' },
    'provisioner-config-file': { type: 'string', multiple: true },
    namespace: { type: 'string' },
    'samples-namespace': { type: 'string' },
  });
  const format = oneOf('format', values.format ?? 'yaml', ['yaml', 'helm']);
  return {
    command: 'synth',
    format,
    out: folder('out', values.out ?? path.join(dist, format === 'yaml' ? 'manifests' : 'chart')),
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
