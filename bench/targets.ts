import { busyEditsOf, costRatiosTo, editsOf, quantile, ratiosTo, runsOf } from './measures';
import type { Edits, OperatorRun, Results, Suite } from './results';

/** `undecided`: met in some rounds and not in others. */
type Verdict = 'held' | 'MISSED' | 'undecided' | 'not measured';

/** One performance target, and whether it is met. */
export interface Target {
  readonly name: string;
  readonly target: string;
  /** The value of each round. */
  readonly values: readonly number[];
  /** The number of rounds behind the values. */
  readonly rounds: number;
  readonly verdict: Verdict;
}

/** The performance targets that these results have values for. */
export function targetsOf(results: Results): readonly Target[] {
  const suites = results.suites.flatMap((suite) => suiteTargets(suite));
  const all = [...suites, ...scaleTargets(results), ...latencyTargets(results), ...synthTargets(results)];
  return all.filter(({ values }) => values.length > 0);
}

function suiteTargets(suite: Suite): readonly Target[] {
  const at = `at ${String(suite.objects)}`;
  const ours = (of: (run: OperatorRun) => number): readonly number[] => runsOf(suite, 'kindred').map(of);
  return [
    atLeast(`objects/s to the plain twin ${at}`, ratiosTo(suite, 'plain'), 2),
    atLeast(`objects/s to the tuned twin ${at}`, ratiosTo(suite, 'tuned'), 1.3),
    atLeast(`objects/s to the same bare requests ${at}`, ratiosTo(suite, 'same'), 0.7),
    atLeast(`objects/s to bare applies ${at}`, ratiosTo(suite, 'apply'), 0.7),
    atMost(
      `writes an object ${at}`,
      ours(({ converged }) => converged.writesPerObject),
      2,
    ),
    atMost(
      `CPU s to the tuned twin ${at}`,
      costRatiosTo(suite, 'tuned', ({ converged }) => converged.cpuSeconds),
      1,
    ),
    atMost(
      `peak RSS to the tuned twin ${at}`,
      costRatiosTo(suite, 'tuned', ({ converged }) => converged.peakMiB),
      1,
    ),
    atMost(
      `writes after a restart ${at}`,
      ours(({ restarted }) => restarted.writeCount),
      0,
    ),
    atMost(
      `start to first write ms ${at}`,
      ours(({ converged }) => converged.firstWriteMs),
      1000,
    ),
  ];
}

/** The cost of an object in the largest suite, relative to the smallest. */
function scaleTargets({ suites }: Results): readonly Target[] {
  const sorted = suites.filter((suite) => runsOf(suite, 'kindred').length > 0).sort((a, b) => a.objects - b.objects);
  const [few, many] = [sorted[0], sorted.at(-1)];
  if (few === undefined || many === undefined || many.objects < 10 * few.objects) return [];
  const rounds = Math.min(few.rounds.length, many.rounds.length);
  const time = (suite: Suite): readonly number[] =>
    runsOf(suite, 'kindred').map(({ converged }) => 1 / converged.objectsPerSecond);
  const times = time(many).flatMap((most) => time(few).map((least) => most / least));
  const between = `time an object, ${String(many.objects)} to ${String(few.objects)}`;
  return [...marginalCpu(sorted), { ...atMost(between, times, 1.1), rounds }];
}

/**
 * CPU time of each further object between the two largest suites, relative to that between the smallest and
 * the second largest. Neither difference contains the start of the process, which is the same for all sizes;
 * in an average, it would hide a growing cost. The rounds of different suites run at different times, so
 * every combination of rounds counts.
 */
function marginalCpu(sorted: readonly Suite[]): readonly Target[] {
  const [few, middle, many] = [sorted[0], sorted.at(-2), sorted.at(-1)];
  if (few === undefined || middle === undefined || many === undefined || middle === few) return [];
  const cpu = (suite: Suite): readonly number[] =>
    runsOf(suite, 'kindred').map(({ converged }) => converged.cpuSeconds);
  const ratios = cpu(many).flatMap((high) =>
    cpu(middle).flatMap((mid) =>
      cpu(few).map(
        (low) => (high - mid) / (many.objects - middle.objects) / ((mid - low) / (middle.objects - few.objects)),
      ),
    ),
  );
  const [from, over, to] = [few, middle, many].map(({ objects }) => String(objects)) as [string, string, string];
  const name = `CPU s of each further object, from ${over} to ${to} against from ${from} to ${over}`;
  return [
    { ...atMost(name, ratios, 1.1), rounds: Math.min(...[few, middle, many].map((suite) => suite.rounds.length)) },
  ];
}

function latencyTargets(results: Results): readonly Target[] {
  const all = ({ first, later }: Edits): readonly number[] => [...first, ...later];
  const idle = editsOf(results, 'kindred').filter((edits) => all(edits).length > 0);
  const busy = busyEditsOf(results, 'kindred');
  const name = `while ${String(results.busy?.objects)} others are brought about: edit to child ms, p99`;
  return [
    atMost(
      'idle: edit to child ms, p50',
      idle.map((edits) => quantile(all(edits), 0.5)),
      10,
    ),
    atMost(
      'idle: edit to child ms, p99',
      idle.map((edits) => quantile(all(edits), 0.99)),
      50,
    ),
    atMost(
      name,
      busy.map(({ toChild }) => quantile(toChild, 0.99)),
      500,
    ),
  ];
}

function synthTargets({ synth }: Results): readonly Target[] {
  if (synth === undefined || synth.kustomize.length === 0) return [];
  const { npm, bundle, kustomize, node } = synth;
  // Each turn runs all four, so the values at one index are comparable.
  const ratios = (times: readonly number[]): readonly number[] =>
    times.map((ms, i) => ms / ((kustomize[i] ?? NaN) + (node[i] ?? NaN)));
  return [
    atMost('npm run synth, to kustomize build and the start of Node', ratios(npm), 1),
    atMost('kindred synth, to the same', ratios(bundle), 1),
  ];
}

function atLeast(name: string, values: readonly number[], least: number): Target {
  return target(name, `>= ${String(least)}`, values, (value) => value >= least);
}

function atMost(name: string, values: readonly number[], most: number): Target {
  return target(name, `<= ${String(most)}`, values, (value) => value <= most);
}

function target(name: string, told: string, values: readonly number[], holds: (value: number) => boolean): Target {
  return { name, target: told, values, rounds: values.length, verdict: verdict(values, holds) };
}

function verdict(values: readonly number[], holds: (value: number) => boolean): Verdict {
  if (values.some(Number.isNaN)) return 'not measured';
  if (values.every(holds)) return 'held';
  return values.some(holds) ? 'undecided' : 'MISSED';
}
