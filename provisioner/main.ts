import { allKinds, provisionerKinds } from '../constructs/kinds';
import { effectEngine } from '../operator/effects/effect-engine';
import { runMain, runProgram } from '../operator/main';
import { parseProvisionerArguments, provisionerUsage } from './arguments';
import { provisionerEffects } from './provisioner';

// The provisioner: an operator that can run every kind, including those that act on machines.
runMain('kindred-provisioner', async () => {
  const args = parseProvisionerArguments(process.argv.slice(2), allKinds, provisionerKinds);
  if (args === 'help') {
    process.stdout.write(provisionerUsage(allKinds, provisionerKinds));
    return;
  }
  const { trustOnFirstUse } = args;
  await runProgram(args, {
    args,
    engine: ({ stateNamespace: namespace, ...settings }) =>
      effectEngine(provisionerEffects({ ...settings, namespace, trustOnFirstUse })),
  });
});
