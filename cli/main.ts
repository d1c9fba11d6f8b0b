import { createRequire } from 'node:module';
import addCompletion from '@bomb.sh/tab/commander';
import type { Command } from '@commander-js/extra-typings';
import type { AnyKind } from '../constructs/kind/kind';
import { codeOf } from '../local/assets/errors';
import { progressToTerminal, whileSlow } from '../local/assets/progress';
import { parseArguments, takeProject } from './arguments';
import { InterruptedError, UsageError } from './errors';
import { printJson } from './flags';
import { newProject } from './new';
import type { Project } from './project';

// A command is imported when it is run: help, completion and what is wrong with a command line come at once.

/**
 * `kindred run`: runs the project's operator in this process; of several, the one of the kinds that `--kinds` names. The
 * program parses its arguments, logs and exits as in its image.
 *
 * @param args - the program's arguments
 */
async function run(project: Project, args: readonly string[]): Promise<void> {
  const { bundleOperator, operatorFor } = await import('./operator-bundle.js');
  const operator = operatorFor(project, args);
  const bundle = await whileSlow('Bundling the operator', progressToTerminal, () => bundleOperator(project, operator));
  process.argv = [process.argv[0] ?? process.execPath, bundle, ...args];
  createRequire(bundle)(bundle);
}

/** `kindred prepare`: downloads or builds every part of the control plane, and kubectl if PATH has none. */
async function prepare(output: 'text' | 'json'): Promise<void> {
  const { cacheFolder, prepare: prepareParts } = await import('../local/index.js');
  const { findProgram } = await import('../local/assets/process.js');
  const isText = output === 'text';
  const onProgress = (line: string): void => void (isText ? process.stdout : process.stderr).write(`${line}\n`);
  const paths = await prepareParts({ components: 'full', kubectl: findProgram('kubectl') === undefined, onProgress });
  if (!isText) printJson({ folder: cacheFolder(), parts: paths });
  else onProgress(`${Object.keys(paths).length} parts of the control plane are there, in ${cacheFolder()}`);
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
    case 'dev': {
      const { dev } = await import('./dev.js');
      return dev(args, await projectIn(from));
    }
    case 'render': {
      const { render } = await import('./render.js');
      return render(args, await kindsIn(from));
    }
    case 'docs': {
      const { docs } = await import('./docs.js');
      return docs(args, await kindsIn(from));
    }
    case 'synth': {
      const { synth } = await import('./synth.js');
      return synth(args, await projectIn(from));
    }
    case 'build': {
      const { build } = await import('./build.js');
      return build(args, await projectIn(from));
    }
    case 'run':
      return run(await projectIn(from), args.rest);
    case 'prepare':
      return prepare(args.output);
    case 'print':
      process.stdout.write(args.text);
      return;
  }
}

async function projectIn(folder: string): Promise<Project> {
  const { loadProject } = await import('./project.js');
  return whileSlow('Loading the kinds of the project', progressToTerminal, () => loadProject(folder));
}

async function kindsIn(folder: string): Promise<readonly AnyKind[]> {
  const { allKindsOf } = await import('./project.js');
  return allKindsOf(await projectIn(folder));
}

/** Writes what went wrong to stderr. */
async function report(error: unknown): Promise<void> {
  if (error instanceof UsageError) {
    process.stderr.write(`kindred: ${error.message}\n`);
    return;
  }
  const { formatError } = await import('./format-error.js');
  process.stderr.write(`kindred: ${formatError(error)}\n`);
}

/** Whoever reads stdout has read enough, as `head` does; or what it leads to cannot be written. */
function endOnClosedStdout(error: Error): void {
  isDone = true;
  if (codeOf(error) === 'EPIPE') process.exit(130);
  process.stderr.write(`kindred: stdout cannot be written to: ${error.message}\n`);
  process.exit(1);
}

let isDone = false;
// Node.js ends, with code 0, when nothing is left to wait for. A command that waits for what never comes has failed.
process.once('exit', () => {
  if (isDone || process.exitCode !== undefined) return;
  process.exitCode = 1;
  process.stderr.write('kindred: it ended before it was done, which should not happen: please report it\n');
});

const finished = main().catch(async (error: unknown) => {
  if (error instanceof InterruptedError) {
    process.stderr.write(`kindred: ${error.message}\n`);
    process.exitCode = 130;
    return;
  }
  await report(error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
void finished.then(() => (isDone = true));
