import { allKinds, provisionerKinds } from '../constructs/kinds';
import { effectEngine } from '../operator/effects/effect-engine';
import { runMain, runProgram } from '../operator/run';
import { parseProvisionerArguments, provisionerUsage } from './arguments';
import { provisionerEffects } from './provisioner';

// The provisioner: an operator that can run every kind, those that act on machines too.
runMain('kindred-provisioner', async () => {
  const args = parseProvisionerArguments(process.argv.slice(2), allKinds, provisionerKinds);
  if (args === 'help') {
    process.stdout.write(provisionerUsage(allKinds, provisionerKinds));
    return;
  }
  const hasEffects = args.kinds.some(({ effects }) => effects.length > 0);
  if (!hasEffects) {
    await runProgram(args);
    return;
  }
  await runProgram(args, {
    drainMs: args.drainSeconds * 1000,
    engine: (client, logger, namespace) =>
      effectEngine(provisionerEffects({ ...args, client, logger, namespace: args.stateNamespace ?? namespace })),
  });
});
