import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { thisMachine } from '../../../bench/machine';
import { operatorReport } from '../../../bench/operator-report';
import type { OperatorResults, Round } from '../../../bench/operator-results';
import { readOptions } from './options';
import type { Options } from './options';
import { Rounds } from './rounds';
import { Stage } from './stage';

/** Sets the stage, measures, and clears the stage whatever happens. */
async function measure(options: Options, signal: AbortSignal): Promise<OperatorResults> {
  const machine = thisMachine();
  const stage = await Stage.set(signal);
  try {
    return await untilAborted(signal, async () => {
      const rounds = new Rounds(stage, options, signal);
      console.error('bench: warming up');
      await rounds.warmUp();
      const done: Round[] = [];
      for (let i = 0; i < options.rounds; i += 1) {
        console.error(`bench: round ${String(i + 1)} of ${String(options.rounds)}`);
        done.push(await rounds.round());
      }
      const { objects, concurrency } = options;
      return { machine, kubernetes: stage.kubernetes, objects, concurrency, rounds: done };
    });
  } finally {
    await stage.clear();
  }
}

/** A signal asked this process to end. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** What it does, or the reason of the abort as soon as that comes. */
async function untilAborted<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  return Promise.race([act(), aborted]);
}

/** `npm run bench -- [--objects=1000] [--rounds=3] [--edits=200] [--concurrency=32] [--out=dist/bench.json]` */
async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // A terminal sends it to tsx too, which hands it on: it may come twice.
    process.on(name, () => stop.abort(new Stopped(`stopped by ${name}`)));
  }
  const results = await measure(options, stop.signal);
  await mkdir(dirname(options.out), { recursive: true });
  await writeFile(options.out, `${JSON.stringify(results, undefined, 2)}\n`);
  console.log(`${operatorReport(results)}\n\nwritten to ${options.out}`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error('bench:', error instanceof Stopped ? error.message : error);
    process.exit(error instanceof Stopped ? 130 : 1);
  },
);
