import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntilIdle } from '../../support/assertions';
import { useTestEnv } from '../../support/test-env';
import { byMode, isLongMode } from '../mode';
import { expectNoMissedEvents, startWithConsistencyChecks } from '../support/steady-state';
import { Churn, injectFaults } from './churn';
import {
  Sampler,
  csv,
  flatness,
  windowMinima,
  type FlatBounds,
  type Flatness,
  type Point,
  type Sample,
} from './flatness';

const minutes = Number(process.env['KINDRED_SOAK_MINUTES'] ?? byMode({ short: 0.5, long: 30 }));
const options = byMode({
  short: { sampleMs: 1000, perSecond: 6, population: 3, rounds: 2, cutEveryMs: 6000, errorsEvery: 2 },
  long: { sampleMs: 5000, perSecond: 3, population: 8, rounds: 6, cutEveryMs: 20_000, errorsEvery: 3 },
});
const folder = join(__dirname, '../../../dist/soak');

const FORM_MINUTES = 30;
/** In three minutes a heap is collected at least once; a shorter run has ten windows all the same. In hours. */
const FLOOR_HOURS = Math.min(180, minutes * 6) / 3600;

/** What must stay flat in half an hour, and how flat that is; README.md says why so. */
const bounds: Readonly<Record<string, FlatBounds & { readonly of: (samples: readonly Sample[]) => readonly Point[] }>> =
  {
    heapFloorMiB: {
      of: (samples) => windowMinima(pointsOf('heapMiB')(samples), FLOOR_HOURS),
      perHour: 3,
      growth: 0.05,
    },
    heapMiB: { of: pointsOf('heapMiB'), perHour: 15, growth: 0.1 },
    rssMiB: { of: pointsOf('rssMiB'), perHour: 15, growth: 0.05 },
    externalMiB: { of: pointsOf('externalMiB'), perHour: 5, growth: 0.25 },
    fds: { of: pointsOf('fds'), perHour: 30, growth: 0.1 },
    sockets: { of: pointsOf('sockets'), perHour: 30, growth: 0.2 },
    resources: { of: pointsOf('resources'), perHour: 60, growth: 0.25 },
    series: { of: pointsOf('series'), perHour: 20, growth: 0.02 },
  };

jest.setTimeout((minutes + 5) * 60_000);
const env = useTestEnv({ proxy: true, operator: false });

test(`${String(minutes)} minutes of churn leave nothing behind`, async () => {
  env.tokenSeconds = Math.max(env.tokenSeconds, (minutes + 10) * 60);
  await startWithConsistencyChecks(env);
  const { operator } = env;
  const namespace = await env.namespace('soak');
  const churn = new Churn(env, { namespace, ...options });
  const sampler = new Sampler(operator);
  const cuts = await soak(churn, sampler);
  await churn.end();
  await waitUntilIdle(env, operator);
  const verdicts = judged(sampler.samples);
  await report(sampler.samples, { minutes, ...options, done: churn.done, cuts, verdicts });

  // The server has no objects left; the watches that tell of it may still be on their way back from the last cut.
  const after = await env.eventually('no object to be left in the caches', async () => {
    const sample = await sampler.take();
    return sample.objects === 0 ? sample : undefined;
  });
  expect(operator.running).toBe(true);
  await expectNoMissedEvents(env.proxy, operator);
  // Labels that name an object would be kept for ever.
  expect(sampler.text).not.toContain(namespace);
  expect(sampler.text).not.toMatch(/soak-[a-z]+-\d+/);
  // How many depends on the machine.
  expect(churn.done.deleted).toBeGreaterThan(0);
  expect(after.reconciles).toBeGreaterThan(churn.done.created + churn.done.changed);
  // Of less than ten minutes most is warm-up: the figures are computed, and written, but mean nothing.
  if (minutes >= 10) expect(problemsOf(verdicts)).toEqual([]);
  else expect(Object.values(verdicts).filter(({ perHour }) => Number.isNaN(perHour))).toEqual([]);
});

/** Churns and makes trouble for the whole time, and samples; @returns how often everything was cut */
async function soak(churn: Churn, sampler: Sampler): Promise<number> {
  const end = new AbortController();
  const { signal } = end;
  const work = Promise.all([injectFaults(env.proxy, options, signal), churn.run(signal)]);
  const failed = work.then(
    () => new Promise<never>(() => undefined),
    (error: unknown) => Promise.reject(error as Error),
  );
  try {
    await Promise.race([failed, sampleFor(sampler)]);
  } finally {
    end.abort();
  }
  const [cuts] = await work;
  env.clearFaults();
  return cuts;
}

async function sampleFor(sampler: Sampler): Promise<void> {
  const until = Date.now() + minutes * 60_000;
  while (Date.now() < until) {
    const sample = await sampler.take();
    if (isLongMode && sampler.samples.length % 60 === 0) process.stderr.write(`${JSON.stringify(sample)}\n`);
    await new Promise((resolve) => setTimeout(resolve, options.sampleMs));
  }
}

/** The longer it is looked, the less of a slope is by chance, and the less is allowed. */
function judged(samples: readonly Sample[]): Readonly<Record<string, Flatness>> {
  const verdicts = Object.entries(bounds).flatMap(([name, { of, perHour, growth }]) => {
    const points = of(samples);
    // Half a minute on a busy machine has too few samples for floors.
    if (minutes < 10 && points.length < 9) return [];
    return [[name, flatness(points, { perHour: (perHour * FORM_MINUTES) / minutes, growth })] as const];
  });
  return Object.fromEntries(verdicts);
}

function pointsOf(name: keyof Sample): (samples: readonly Sample[]) => readonly Point[] {
  return (samples) => samples.map((sample) => ({ hours: sample.seconds / 3600, value: sample[name] }));
}

function problemsOf(verdicts: Readonly<Record<string, Flatness>>): readonly string[] {
  return Object.entries(verdicts).flatMap(([name, { problems }]) => problems.map((problem) => `${name} ${problem}`));
}

async function report(samples: readonly Sample[], summary: object): Promise<void> {
  const name = isLongMode ? 'long' : 'short';
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.csv`), csv(samples));
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(summary, undefined, 2)}\n`);
}
