import path from 'node:path';
import { Option, type Command } from '@commander-js/extra-typings';
import { collect, configFiles, folder, namespaceName, outputOption, type TakeArguments } from './flags';
import type { PlatformArguments } from './project-platform';

/** The parsed arguments of `kindred synth`. */
export interface SynthArguments extends PlatformArguments {
  readonly command: 'synth';
  readonly format: 'yaml' | 'helm';
  readonly out: string;
  readonly output: 'text' | 'json';
}

/** Adds `kindred synth` to the command line. */
export function addSynth(program: Command, take: TakeArguments<SynthArguments>): void {
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
    .addOption(
      new Option(
        '--image <[operator=]image>',
        "the operator's image; with the name of an operator, that one's, and an optional operator is installed then; may be repeated",
      ).argParser(collect),
    )
    .option(
      '--config-secret <[operator=]name>',
      "Secret in the operator's namespace with the files that objects of kinds with effects may name (default: none)",
    )
    .addOption(
      new Option(
        '--config-file <path=key>',
        'one of these files and its key; may be repeated (default: one for each key)',
      ).argParser(collect),
    )
    .option('--cert-manager', 'certificates for kinds of several versions are issued by cert-manager')
    .option('--namespace <name>', 'of the operator (default: <name of the package>-system)', (value) =>
      namespaceName('namespace', value),
    )
    .option('--samples-namespace <name>', 'of the samples (default: <name of the package>-samples)', (value) =>
      namespaceName('samples-namespace', value),
    )
    .addOption(outputOption('the names of the files'))
    .action(({ format, out, output, image, configSecret, configFile, certManager, namespace, samplesNamespace }) =>
      take({
        command: 'synth',
        format,
        output,
        out: out ?? path.join('dist', format === 'yaml' ? 'manifests' : 'chart'),
        images: image ?? [],
        ...{ configSecret, namespace, samplesNamespace },
        configFiles: configFiles('config-file', configFile),
        certManager: certManager === true,
      }),
    );
}
