import { kinds } from '../constructs/kinds/kinds';
import { parseArguments, usage } from './arguments';
import { runMain, runProgram } from './run';

// The operator of Kindred's own kinds that do not act on machines.
runMain('kindred-operator', async () => {
  const args = parseArguments(process.argv.slice(2), kinds);
  if (args === 'help') process.stdout.write(usage(kinds));
  else await runProgram(args);
});
