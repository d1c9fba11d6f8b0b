import { parseArguments } from './arguments';
import { CliError, UsageError } from './errors';
import { synth } from './synth';

/**
 * `npm run synth`: `kindred synth` without the other commands. By default it writes beside its bundle.
 *
 * @throws errors other than CliError, so that scripts/run-synth.mjs can show where in the sources they
 *   occurred
 */
async function main(): Promise<void> {
  const args = parseArguments(['synth', ...process.argv.slice(2)], { dist: __dirname });
  if (args.command === 'synth') return synth(args);
  if (args.command === 'print') process.stdout.write(args.text);
}

main().catch((error: unknown) => {
  if (!(error instanceof CliError)) throw error;
  process.stderr.write(`kindred: ${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
