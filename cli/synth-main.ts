import path from 'node:path';
import { parseArguments } from './arguments';
import { CliError, UsageError } from './errors';
import { synth } from './synth';
import { usage } from './usage';

/**
 * `npm run synth`: `kindred synth` without the other commands, and by default into `manifests` beside its bundle.
 *
 * @throws whatever is no CliError, for who runs the bundle to show where in the sources it was
 */
async function main(): Promise<void> {
  // A flag that is given twice counts as it was given last.
  const args = parseArguments(['synth', `--out=${path.join(__dirname, 'manifests')}`, ...process.argv.slice(2)]);
  if (args.command === 'synth') return synth(args);
  process.stdout.write(usage('synth'));
}

main().catch((error: unknown) => {
  if (!(error instanceof CliError)) throw error;
  process.stderr.write(`kindred: ${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
