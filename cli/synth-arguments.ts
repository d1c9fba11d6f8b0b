import path from 'node:path';
import { Option, type Command } from '@commander-js/extra-typings';
import { DEFAULT_NAMESPACE } from '../constructs/platform';
import {
  SAMPLES_NAMESPACE,
  collect,
  configFiles,
  flagError,
  folder,
  image,
  namespaceName,
  secretName,
  type TakeArguments,
} from './flags';

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

/** Adds `kindred synth` to the command line. @param dist - folder in which it writes by default */
export function addSynth(program: Command, take: TakeArguments<SynthArguments>, dist: string): void {
  program
    .command('synth')
    .description("write the platform's manifests as YAML, or as a Helm chart")
    .addHelpText(
      'after',
      `
The YAML is 1-crds.yaml, 2-platform.yaml and 3-samples.yaml, in the order in which kubectl apply takes them; and
argo-cd.yaml, for kubectl apply --server-side, with which Argo CD understands the kinds' health.`,
    )
    .addOption(
      new Option('--format <format>', 'yaml, or helm: the platform as a Helm chart, without samples')
        .choices(['yaml', 'helm'])
        .default('yaml' as const),
    )
    .option('--out <dir>', '(default: dist/manifests, or dist/chart)', (value) => folder('out', value))
    .option('--image <image>', "the operator's image", (value) => image('image', value))
    .option(
      '--provisioner-image <image>',
      'install the provisioner too, of this image (default: only the CRDs of its kinds)',
      (value) => image('provisioner-image', value),
    )
    .option(
      '--provisioner-config-secret <name>',
      "Secret in the operator's namespace with the files that configPath of a Cluster may name (default: none)",
      (value) => secretName('provisioner-config-secret', value),
    )
    .addOption(
      new Option(
        '--provisioner-config-file <path=key>',
        'one of these files and its key; may be repeated (default: one for each key)',
      ).argParser(collect),
    )
    .option('--namespace <name>', `of the operator (default: ${DEFAULT_NAMESPACE})`, (value) =>
      namespaceName('namespace', value),
    )
    .option('--samples-namespace <name>', `of the samples (default: ${SAMPLES_NAMESPACE})`, (value) =>
      namespaceName('samples-namespace', value),
    )
    .action(({ format, out, image: operatorImage, provisionerImage, namespace, samplesNamespace, ...config }) =>
      take({
        command: 'synth',
        format,
        out: out ?? path.join(dist, format === 'yaml' ? 'manifests' : 'chart'),
        image: operatorImage,
        provisionerImage,
        ...provisionerConfig({ provisionerImage, ...config }),
        ...synthNamespaces(namespace, samplesNamespace),
      }),
    );
}

function provisionerConfig(values: {
  readonly provisionerImage: string | undefined;
  readonly provisionerConfigSecret?: string | undefined;
  readonly provisionerConfigFile?: readonly string[] | undefined;
}): Pick<SynthArguments, 'provisionerConfigSecret' | 'provisionerConfigFiles'> {
  const { provisionerImage, provisionerConfigSecret: secret, provisionerConfigFile: files } = values;
  if (secret !== undefined && provisionerImage === undefined)
    throw flagError('provisioner-config-secret', secret, 'it is for the provisioner: name its --provisioner-image too');
  if (files !== undefined && secret === undefined)
    throw flagError('provisioner-config-file', files.join(), 'name the Secret too, with --provisioner-config-secret');
  return {
    provisionerConfigSecret: secret,
    provisionerConfigFiles: configFiles('provisioner-config-file', files),
  };
}

function synthNamespaces(
  operators: string | undefined,
  samples: string | undefined,
): Pick<SynthArguments, 'namespace' | 'samplesNamespace'> {
  const [namespace, samplesNamespace] = [operators ?? DEFAULT_NAMESPACE, samples ?? SAMPLES_NAMESPACE];
  if (namespace !== samplesNamespace) return { namespace, samplesNamespace };
  throw samples === undefined
    ? flagError(
        'namespace',
        namespace,
        'it is where the samples go: name another one, or other samples with --samples-namespace',
      )
    : flagError('samples-namespace', samples, "it is the operator's own namespace: name another one for the samples");
}
