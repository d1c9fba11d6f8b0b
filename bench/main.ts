import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  codeIn,
  loadNow,
  operators,
  thisMachine,
  type BusyRound,
  type Results,
  type Suite,
  type Synth,
} from './results';
import { publish } from './publish';
import { report } from './report';
import { busyRound, type BusyEditsContext } from './busy-edits';
import { peerWorkers } from './operators-under-test';
import { reportedArguments, readOptions, usage, type Options } from './options';
import { Rounds } from './rounds';
import { BenchEnv } from './bench-env';
import { measureSynth } from './synth';

const root = join(__dirname, '..');

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const options = readOptions(args);
  if (options === 'help') {
    console.log(usage);
    return;
  }
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // A terminal also sends it to tsx, which passes it on, so it may come twice.
    process.on(name, () => stop.abort(new StoppedError(`stopped by ${name}`)));
  }
  const results =
    options.from === ''
      ? await measureAndSave(options, reportedArguments(args), stop.signal)
      : await read(options.from);
  console.log(report(results));
  if (!options.publish) return;
  await publish(results, join(root, 'docs'));
  console.log('published to docs/benchmarks.md and docs/benchmarks/');
}

/** A signal ended the benchmark. */
class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

function log(line: string): void {
  console.error(`bench: ${line}`);
}

/** Measures, and writes all figures to the file `options.out`. */
async function measureAndSave(options: Options, args: readonly string[], signal: AbortSignal): Promise<Results> {
  await mkdir(dirname(options.out), { recursive: true });
  const results = await measure(options, args, signal, async (known) => {
    await writeFile(options.out, `${JSON.stringify(known, undefined, 2)}\n`);
  });
  log(`every figure is in ${options.out}`);
  return results;
}

/** Reads the results of an earlier run. JSON has no NaN, so null stands for it. */
async function read(file: string): Promise<Results> {
  const nan = (_: string, value: unknown): unknown => value ?? NaN;
  return JSON.parse(await readFile(file, 'utf8'), nan) as Results;
}

/**
 * Creates the environment, measures, and always removes the environment again.
 *
 * @param args the options as they were given, for the results
 * @param keep saves the results so far after each measurement, so that a later failure does not lose them
 */
async function measure(
  options: Options,
  args: readonly string[],
  signal: AbortSignal,
  keep: (results: Results) => Promise<void>,
): Promise<Results> {
  const machine = thisMachine();
  const code = await codeIn(root, signal); // before anything is built
  const stage = await BenchEnv.create(options, signal);
  try {
    return await untilAborted(signal, async () => {
      const skipped = [...stage.skipped];
      const rounds = new Rounds(stage, signal);
      log('warming up');
      await rounds.warmUp();
      const { concurrency } = options;
      const suites: Suite[] = [];
      let results: Results = {
        ...{ machine, code, args, kubernetes: stage.kubernetes, skipped, concurrency, peerWorkers, suites },
        ...{ busy: undefined, synth: undefined },
      };
      const add = (more: Partial<Results>): Promise<void> =>
        keep((results = { ...results, ...more, machine: { ...machine, loadAfter: loadNow() } }));
      for (const objects of options.objects) {
        suites.push(await suite(rounds, objects, suites.length === 0, options));
        await add({ suites });
      }
      const on = { stage, rounds, signal };
      await busyEdits(on, options, (known) => add({ busy: { objects: options.busy, rounds: known } }));
      if (options.synth) await add({ synth: await synthesis(skipped, signal) });
      if (options.scale > 0) {
        const at = suites.push({ objects: options.scale, rounds: [] }) - 1;
        for await (const known of scale(rounds, options)) {
          suites[at] = known;
          await add({ suites });
        }
      }
      return results;
    });
  } finally {
    await stage.close();
  }
}

/** All rounds with one number of objects. Every second round runs in reverse order. */
async function suite(rounds: Rounds, objects: number, first: boolean, options: Options): Promise<Suite> {
  const edits = first ? Math.ceil(options.edits / options.rounds) : 0;
  const done: Suite['rounds'][number][] = [];
  for (let i = 0; i < options.rounds; i += 1) {
    log(`${String(objects)} objects, round ${String(i + 1)} of ${String(options.rounds)}`);
    done.push(await rounds.round({ objects, names: operators, edits, backwards: i % 2 === 1 }));
  }
  return { objects, rounds: done };
}

/**
 * Rounds with our operator and the bare requests alone, in both orders. Yields after each round, since one
 * takes minutes.
 */
async function* scale(rounds: Rounds, { scale: objects, rounds: most }: Options): AsyncGenerator<Suite> {
  const done: Suite['rounds'][number][] = [];
  for (let i = 0; i < Math.min(2, most); i += 1) {
    log(`${String(objects)} objects, our operator alone, round ${String(i + 1)} of ${String(Math.min(2, most))}`);
    done.push(await rounds.round({ objects, names: ['kindred'], edits: 0, backwards: i % 2 === 1 }));
    yield { objects, rounds: [...done] };
  }
}

/** All rounds of edits while operators are busy, saved after each. */
async function busyEdits(
  on: BusyEditsContext,
  { busy, rounds }: Options,
  keep: (known: readonly BusyRound[]) => Promise<void>,
): Promise<void> {
  const known: BusyRound[] = [];
  for (let i = 0; busy > 0 && i < rounds; i += 1) {
    log(`edits while ${String(busy)} others are brought about, round ${String(i + 1)} of ${String(rounds)}`);
    known.push(await busyRound(on, busy, i % 2 === 1));
    await keep(known);
  }
}

async function synthesis(skipped: string[], signal: AbortSignal): Promise<Synth> {
  log('the platform as YAML');
  return measureSynth(root, (why) => void skipped.push(why), signal);
}

/** Resolves with the result of `act`, or rejects with the abort reason as soon as the signal aborts. */
async function untilAborted<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  return Promise.race([act(), aborted]);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error('bench:', error instanceof StoppedError ? error.message : error);
    process.exit(error instanceof StoppedError ? 130 : 1);
  },
);
