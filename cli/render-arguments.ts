import { Option, type Command } from '@commander-js/extra-typings';
import { namespaceName, type TakeArguments } from './flags';

/** The parsed arguments of `kindred render`. */
export interface RenderArguments {
  readonly command: 'render';
  /** Files with objects; `-` is stdin. */
  readonly files: readonly string[];
  /** Namespace of namespaced objects that name none. */
  readonly namespace: string;
  readonly output: 'yaml' | 'json' | 'tree';
}

/** Adds `kindred render` to the command line. */
export function addRender(program: Command, take: TakeArguments<RenderArguments>): void {
  program
    .command('render')
    .description('print the children of objects, without a cluster')
    .argument('<files...>', 'YAML or JSON with objects of the kinds; - is stdin')
    .option(
      '-n, --namespace <name>',
      'namespace of objects that name none',
      (value) => namespaceName('namespace', value),
      'default',
    )
    .addOption(
      new Option('-o, --output <format>', 'yaml; json, a List; or tree, who owns what')
        .choices(['yaml', 'json', 'tree'])
        .default('yaml' as const),
    )
    .addHelpText(
      'after',
      `
The objects are validated first. The children are those that the operator would apply, without the labels and owner
references that it adds. Rules in CEL that have no counterpart in TypeScript are only checked by the API server.`,
    )
    .action((files, { namespace, output }) => take({ command: 'render', files, namespace, output }));
}
