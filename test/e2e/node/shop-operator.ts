import { parseArguments, usage } from '../../../operator/arguments';
import { runMain, runProgram } from '../../../operator/run';
import { Shop } from '../../constructs/kind/versions-kind';

// The operator of a kind of several versions, as a kind author would write it.
runMain('shop-operator', async () => {
  const args = parseArguments(process.argv.slice(2), [Shop]);
  if (args === 'help') process.stdout.write(usage([Shop]));
  else await runProgram(args);
});
