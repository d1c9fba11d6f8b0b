import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { operatorBundle } from '../../../testing';
import { useTestEnv } from '../../support/test-env';
import { byMode } from '../mode';
import { startWithConsistencyChecks } from '../support/steady-state';
import { expectEndState, expectNoWrites, clearFaults, waitUntilSettled } from './settle';
import { walks, type Walk } from './steps';
import { WalkEnv } from './walk-env';

const length = 15;
const numRuns = Number(process.env['KINDRED_WALKS'] ?? byMode({ short: 3, long: 60 }));
const shrinkMinutes = Number(process.env['KINDRED_SHRINK_MINUTES'] ?? 0);
const minutesAWalk = 3;
const accounts = join(__dirname, '../../../dist/walks');

jest.setTimeout((numRuns * minutesAWalk + shrinkMinutes + 3) * 60_000);
const env = useTestEnv({ proxy: true, operator: false });

test('whatever happened, the cluster ends as the last specs say, and stays so', async () => {
  await startWithConsistencyChecks(env);
  await rm(accounts, { recursive: true, force: true });
  await mkdir(accounts, { recursive: true });
  const seed = await chosenSeed();
  const path = process.env['KINDRED_PATH'];
  const replay = `KINDRED_SEED=${String(seed)}`;
  process.stderr.write(`${String(numRuns)} walks of ${String(length)} steps, ${replay}\n`);
  const details = await fc.check(fc.asyncProperty(walks(length), walked), {
    ...{ seed, numRuns, endOnFailure: shrinkMinutes === 0 },
    ...(path === undefined ? {} : { path }),
    plugins: shrinkMinutes === 0 ? [] : [fc.interruptAfterTimeLimit((numRuns * minutesAWalk + shrinkMinutes) * 60_000)],
  });
  if (!details.failed) return;
  const error = details.errorInstance as Error | null;
  const again = `${replay} KINDRED_PATH=${details.counterexamplePath ?? ''}`;
  throw new Error(
    `walk ${String(details.numRuns)} failed; to go it again: ${again}\n${error?.message ?? 'interrupted'}`,
    {
      cause: error,
    },
  );
});

/** One walk, from its first step to the proof that nothing moves any more. */
async function walked(walk: Walk): Promise<void> {
  const namespace = await env.namespace('walk');
  const world = new WalkEnv(env, namespace, walk);
  forgetRequests();
  try {
    await world.run();
    await clearFaults(world);
    await expectNoWrites(world, await waitUntilSettled(world));
    await expectEndState(world);
  } catch (error) {
    const log = env.operator.log.all.slice(-15).map((line) => JSON.stringify(line));
    const { message } = error as Error;
    throw new Error([message, 'The walk was:', ...world.trace, 'The operator said last:', ...log].join('\n'), {
      cause: error,
    });
  } finally {
    await writeFile(join(accounts, `${namespace}.txt`), [...world.trace, ''].join('\n'));
  }
  await removeAll(namespace);
}

/** They would pile up over sixty walks. Watches stay: what the operator at work watches is looked up, and it has opened them already. */
function forgetRequests(): void {
  const { requests } = env.proxy;
  requests.splice(0, requests.length, ...requests.filter(({ verb }) => verb === 'watch'));
}

/** The garbage collector does the rest while the next walk goes. */
async function removeAll(namespace: string): Promise<void> {
  const { code, stderr } = await env.kubectl(['delete', 'namespace', namespace, '--wait=false']);
  if (code !== 0) throw new Error(stderr);
}

/**
 * The long form goes new ways each time. The short form goes ways of its own for every operator: its seed is the bundle's fingerprint. So a change of
 * the operator is walked anew, and the same code never fails in one run of CI and passes in the next because it was walked differently.
 */
async function chosenSeed(): Promise<number> {
  const given = process.env['KINDRED_SEED'];
  if (given !== undefined) return Number(given);
  const bundle = await readFile(await operatorBundle());
  return byMode({ short: createHash('sha256').update(bundle).digest().readInt32BE(0), long: Date.now() % 2 ** 31 });
}
