import { styleText } from 'node:util';
import { Command, CommanderError } from '@commander-js/extra-typings';
import { version } from '../package.json';
import { addBuild, type BuildArguments } from './build-arguments';
import { UsageError } from './errors';
import { flagError, outputOption, type TakeArguments } from './flags';
import { addDocs, type DocsArguments } from './docs-arguments';
import { addNew, type NewArguments } from './new';
import { addRender, type RenderArguments } from './render-arguments';
import { addDev, type DevArguments } from './dev-arguments';
import { addSynth, type SynthArguments } from './synth-arguments';

/** The parsed command line. */
type Arguments =
  | NewArguments
  | DevArguments
  | SynthArguments
  | BuildArguments
  | RenderArguments
  | DocsArguments
  | { readonly command: 'run'; readonly rest: readonly string[] }
  | { readonly command: 'prepare'; readonly output: 'text' | 'json' }
  /** `--help`, `--version` and the like: the text to print. */
  | { readonly command: 'print'; readonly text: string };

/** Width of help in characters where no terminal says one. */
const HELP_WIDTH = 110;

/** How a command line is parsed. */
interface ParseOptions {
  /** Adds further commands. @default none */
  readonly extend?: (program: Command) => void;
}

/**
 * Parses the command line.
 *
 * @throws UsageError saying which argument is wrong and what it may be
 */
export function parseArguments(argv: readonly string[], options: ParseOptions = {}): Arguments {
  let parsed: Arguments | undefined;
  let text = '';
  const program = commandLine({
    take: (args) => (parsed = args),
    print: (more) => (text += more),
  });
  options.extend?.(program);
  const [command, topic] = argv;
  if (command === 'help' && topic !== undefined) assertCommand(program, topic);
  assertValues(program, argv);
  try {
    const asksForAll = argv.length === 0 || (command === 'help' && topic === 'help');
    program.parse(asksForAll ? ['--help'] : [...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw usageError(error, program, command);
    parsed = { command: 'print', text };
  }
  // Commands that were added from outside have done their work.
  return parsed ?? { command: 'print', text: '' };
}

/**
 * Takes `--project` off a command line, which stands before the command.
 *
 * @returns the folder whose project is meant, and the rest
 * @throws UsageError when it names no folder
 */
export function takeProject(argv: readonly string[]): { readonly from: string; readonly rest: readonly string[] } {
  const [first = '', second, ...others] = argv;
  const [flag, value] = first.split(/=(.*)/s);
  if (flag !== '--project') return { from: process.cwd(), rest: argv };
  const from = value ?? second ?? '';
  if (from === '' || from.startsWith('-')) throw flagError('project', from, 'name the folder of a project');
  return { from, rest: value === undefined ? others : argv.slice(1) };
}

/**
 * The commands, as `kindred help` lists them.
 *
 * @testonly
 */
export function commandNames(): readonly string[] {
  return namesOf(commandLine({ take: () => undefined, print: () => undefined }));
}

function namesOf(program: Command): readonly string[] {
  return [...program.commands.map((command) => command.name()), 'help'];
}

/** What the commands do with what they are given. */
interface Receivers {
  readonly take: TakeArguments<Arguments>;
  readonly print: (text: string) => void;
}

function commandLine({ take, print }: Receivers): Command {
  const program = new Command('kindred')
    .description('Kubernetes kinds, defined once.')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help, or that of one command: kindred help dev')
    .option(
      '--project <dir>',
      "the project's folder, before the command (default: the nearest one with a package.json)",
    )
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp({
      styleTitle: (title) => styleText('bold', title),
      subcommandTerm: (command) => command.name(),
    })
    .configureOutput({
      writeOut: print,
      // The error is reported by whoever parses.
      writeErr: () => undefined,
      getOutHelpWidth: () => (process.stdout.isTTY ? process.stdout.columns : HELP_WIDTH),
    })
    .addHelpText(
      'after',
      `
In a project, kindred is: npx kindred

Exit codes: 0 it is done, 1 it failed, 2 the command line is not valid, 130 you stopped it.`,
    );
  addNew(program, take);
  addDev(program, take);
  addRender(program, take);
  addSynth(program, take);
  addBuild(program, take);
  addDocs(program, take);
  program
    .command('run')
    .description('run the operator on this machine, against the cluster of a kubeconfig')
    .addHelpText(
      'after',
      `
Of several operators it is the one that has the kinds of --kinds, by default the first. The CRDs must exist in the
cluster: kindred synth, kubectl apply. All options are the operator's own: kindred run --help`,
    )
    .usage('[options]')
    .helpOption(false)
    .allowUnknownOption()
    .argument('[arguments...]')
    .action((_, __, command) => take({ command: 'run', rest: command.args }));
  program
    .command('prepare')
    .description('download or build the parts of the control plane, so that a later start takes seconds')
    .addHelpText(
      'after',
      `
kubectl is one of them where PATH has none. They come from KUBEBUILDER_ASSETS, the cache, the official
downloads, or are built with Go. What is there already costs a look.`,
    )
    .addOption(outputOption('the folder of the cache and the files by part'))
    .action(({ output }) => take({ command: 'prepare', output }));
  return program;
}

/**
 * Refuses an option where the value of another one is expected: `--out --format=helm` lacks the value of `--out`. Commander
 * would take whatever comes next.
 */
function assertValues(program: Command, [name, ...words]: readonly string[]): void {
  const command = program.commands.find((one) => one.name() === name);
  // The operator parses its own.
  if (command === undefined || name === 'run' || name === 'complete') return;
  for (const [i, word] of words.entries()) {
    if (word === '--') return;
    const option = command.options.find(({ long, short }) => long === word || short === word);
    const next = words[i + 1];
    if (option?.required === true && next !== undefined && /^-./.test(next)) {
      throw new UsageError(`option '${option.flags}' argument missing. See: kindred help ${command.name()}`);
    }
  }
}

function assertCommand(program: Command, name: string): void {
  if (namesOf(program).includes(name)) return;
  throw new UsageError(`there is no help on "${name}"; there is on ${namesOf(program).join(', ')}`);
}

function usageError(error: CommanderError, program: Command, command: string | undefined): UsageError {
  if (error.code === 'commander.unknownCommand') {
    const names = namesOf(program).join(', ');
    return new UsageError(`"${command ?? ''}" is no command; there are ${names}. Try: kindred help`, { cause: error });
  }
  const why = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  const isKnown = command !== undefined && namesOf(program).includes(command);
  return new UsageError(`${why.replace(/\.$/, '')}. See: kindred help${isKnown ? ` ${command}` : ''}`, {
    cause: error,
  });
}
