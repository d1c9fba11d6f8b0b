import { version } from '../package.json';
import { parseArguments } from './arguments';
import { Interrupted, UsageError } from './errors';
import { explain } from './explain';
import { prepare } from './prepare';
import { run } from './run';
import { start } from './start/start';
import { synth } from './synth';
import { usage } from './usage';

async function main(): Promise<void> {
  const args = parseArguments(process.argv.slice(2));
  switch (args.command) {
    case 'start':
      return start(args);
    case 'synth':
      return synth(args);
    case 'run':
      run(args.rest);
      return;
    case 'prepare':
      return prepare();
    case 'version':
      process.stdout.write(`${version}\n`);
      return;
    case 'help':
      process.stdout.write(usage(args.topic));
      return;
  }
}

main().catch((error: unknown) => {
  if (error instanceof Interrupted) {
    process.stderr.write(`kindred: ${error.message}\n`);
    process.exitCode = 130;
    return;
  }
  process.stderr.write(`kindred: ${explain(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
