import path from 'node:path';
import { parseArguments } from './arguments';
import { CliError, UsageError } from './errors';
import { synth } from './synth';
import { usage } from './usage';

/**
 * `npm run synth`: `kindred synth` without the other commands. By default it writes into `manifests` beside
 * its bundle.
 *
 * @throws errors other than CliError, so that scripts/run-synth.mjs can show where in the sources they
 *   occurred
 */
async function main(): Promise<void> {
  // If a flag is given twice, the last value counts.
  const args = parseArguments(['synth', `--out=${path.join(__dirname, 'manifests')}`, ...process.argv.slice(2)]);
  if (args.command === 'synth') return synth(args);
  process.stdout.write(usage('synth'));
}

main().catch((error: unknown) => {
  if (!(error instanceof CliError)) throw error;
  process.stderr.write(`kindred: ${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
