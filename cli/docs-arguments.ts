import type { Command } from '@commander-js/extra-typings';
import { folder, outputOption, type TakeArguments } from './flags';

/** The parsed arguments of `kindred docs`. */
export interface DocsArguments {
  readonly command: 'docs';
  readonly out: string;
  /** Write nothing, and fail if a page is not what it should be. */
  readonly check: boolean;
  readonly output: 'text' | 'json';
}

/** Adds `kindred docs` to the command line. */
export function addDocs(program: Command, take: TakeArguments<DocsArguments>): void {
  program
    .command('docs')
    .description('write a reference of each kind for its users, as Markdown')
    .option('--out <dir>', 'folder of the pages', (value) => folder('out', value), 'docs/kinds')
    .option('--check', 'write nothing; exit code 1 if a page is missing or out of date, for CI')
    .addOption(outputOption('the names of the files that were written and removed, or with --check are out of date'))
    .addHelpText(
      'after',
      `
A page has the fields with their types, defaults and limits, rules, conditions and reasons, children, permissions and
examples; README.md lists the pages. The same kinds give the same bytes.`,
    )
    .action(({ out, check, output }) => take({ command: 'docs', out, check: check === true, output }));
}
