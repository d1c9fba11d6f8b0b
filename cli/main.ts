import { createRequire } from 'node:module';
import addCompletion from '@bomb.sh/tab/commander';
import type { Command } from '@commander-js/extra-typings';
import { cacheFolder, prepare as prepareParts } from '../local';
import { codeOf } from '../local/assets/errors';
import { findProgram } from '../local/assets/process';
import { parseArguments, takeProject } from './arguments';
import { build } from './build';
import { docs } from './docs';
import { CliError, InterruptedError, UsageError } from './errors';
import { formatError } from './format-error';
import { newProject } from './new';
import { bundleOperator, operatorFor } from './operator-bundle';
import { allKindsOf, loadProject, type Project } from './project';
import { render } from './render';
import { dev } from './dev';
import { synth } from './synth';

/**
 * `kindred run`: runs the project's operator in this process; of several, the one of the kinds that `--kinds` names. The
 * program parses its arguments, logs and exits as in its image.
 *
 * @param args - the program's arguments
 */
async function run(project: Project, args: readonly string[]): Promise<void> {
  const bundle = await bundleOperator(project, operatorFor(project, args));
  process.argv = [process.argv[0] ?? process.execPath, bundle, ...args];
  createRequire(bundle)(bundle);
}

/** `kindred prepare`: downloads or builds every part of the control plane, and kubectl if PATH has none. */
async function prepare(): Promise<void> {
  const onProgress = (line: string): void => void process.stdout.write(`${line}\n`);
  const paths = await prepareParts({ components: 'full', kubectl: findProgram('kubectl') === undefined, onProgress });
  onProgress(`${Object.keys(paths).length} parts of the control plane are there, in ${cacheFolder()}`);
}

/** `kindred complete`: prints the completion script of a shell, which then asks this command for completions. */
function completion(program: Command): void {
  // Its types are those of plain commander.
  addCompletion(program as never);
  program.commands
    .find((command) => command.name() === 'complete')
    ?.description('print the completion script of a shell');
}

async function main(): Promise<void> {
  const { from, rest } = takeProject(process.argv.slice(2));
  const args = parseArguments(rest, { extend: completion });
  // `dev` has processes to end first.
  if (args.command !== 'dev') process.stdout.on('error', endOnClosedStdout);
  switch (args.command) {
    case 'new':
      return newProject(args);
    case 'dev':
      return dev(args, await loadProject(from));
    case 'render':
      return render(args, allKindsOf(await loadProject(from)));
    case 'docs':
      return docs(args, allKindsOf(await loadProject(from)));
    case 'synth':
      return synth(args, await loadProject(from));
    case 'build':
      return build(args, await loadProject(from));
    case 'run':
      return run(await loadProject(from), args.rest);
    case 'prepare':
      return prepare();
    case 'print':
      process.stdout.write(args.text);
      return;
  }
}

/** Whoever reads stdout has read enough, as `head` does; or what it leads to cannot be written. */
function endOnClosedStdout(error: Error): void {
  isDone = true;
  if (codeOf(error) === 'EPIPE') process.exit(130);
  process.stderr.write(`kindred: ${formatError(new CliError(`stdout cannot be written to: ${error.message}`))}\n`);
  process.exit(1);
}

let isDone = false;
// Node.js ends, with code 0, when nothing is left to wait for. A command that waits for what never comes has failed.
process.once('exit', () => {
  if (isDone || process.exitCode !== undefined) return;
  process.exitCode = 1;
  process.stderr.write('kindred: it ended before it was done, which should not happen: please report it\n');
});

const finished = main().catch((error: unknown) => {
  if (error instanceof InterruptedError) {
    process.stderr.write(`kindred: ${error.message}\n`);
    process.exitCode = 130;
    return;
  }
  process.stderr.write(`kindred: ${formatError(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
void finished.then(() => (isDone = true));
