import { allKinds, provisionerKinds } from '../constructs/kinds';
import { effectEngine } from '../operator/effects/effect-engine';
import { runMain, runProgram, type ProgramEffects } from '../operator/main';
import { parseProvisionerArguments, provisionerUsage, type ProvisionerArguments } from './arguments';
import { provisionerEffects } from './provisioner';

// The provisioner: an operator that can run every kind, including those that act on machines.
runMain('kindred-provisioner', async () => {
  const args = parseProvisionerArguments(process.argv.slice(2), allKinds, provisionerKinds);
  if (args === 'help') process.stdout.write(provisionerUsage(allKinds, provisionerKinds));
  else await runProgram(args, args.kinds.some(({ effects }) => effects.length > 0) ? effectsFor(args) : undefined);
});

function effectsFor(args: ProvisionerArguments): ProgramEffects {
  return {
    drainMs: args.drainSeconds * 1000,
    engine: (client, logger, namespace) =>
      effectEngine(provisionerEffects({ ...args, client, logger, namespace: args.stateNamespace ?? namespace })),
  };
}
