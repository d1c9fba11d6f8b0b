import { ratiosTo, runsOf } from './measures';
import type { Edits, OperatorRun, Results, Suite } from './results';
import { quantile } from './statistics';

/** One promise, and how it stands. */
export interface Target {
  readonly name: string;
  readonly target: string;
  readonly measured: number;
  /** Whether it holds; false when it could not be measured. */
  readonly held: boolean;
}

/** Every promise about speed that these results can speak of. */
export function targetsOf(results: Results): readonly Target[] {
  const suites = results.suites.flatMap((suite) => suiteTargets(suite));
  return [...suites, ...scaleTargets(results), ...latencyTargets(results), ...synthTargets(results)];
}

function suiteTargets(suite: Suite): readonly Target[] {
  const at = `at ${String(suite.objects)}`;
  const ours = runsOf(suite, 'kindred');
  const theirs = runsOf(suite, 'tuned');
  const more = (name: string, values: readonly number[], least: number): readonly Target[] =>
    values.length === 0 ? [] : [atLeast(`${name} ${at}`, median(values), least)];
  const versus = (name: string, of: (run: OperatorRun) => number): readonly Target[] =>
    theirs.length === 0 ? [] : [atMost(`${name} ${at}`, median(ours.map(of)), median(theirs.map(of)))];
  if (ours.length === 0) return [];
  return [
    ...more('objects/s to the plain twin', ratiosTo(suite, 'plain'), 2),
    ...more('objects/s to the tuned twin', ratiosTo(suite, 'tuned'), 1.3),
    ...more('objects/s to the same bare requests', ratiosTo(suite, 'same'), 0.7),
    ...more('objects/s to bare applies', ratiosTo(suite, 'apply'), 0.7),
    atMost(`writes an object ${at}`, median(ours.map(({ converged }) => converged.writesPerObject)), 2),
    ...versus('CPU s, to the tuned twin', ({ converged }) => converged.cpuSeconds),
    ...versus('peak RSS MiB, to the tuned twin', ({ converged }) => converged.peakMiB),
    atMost(`writes after a restart ${at}`, median(ours.map(({ restarted }) => restarted.writeCount)), 0),
    atMost(`start to first write ms ${at}`, median(ours.map(({ converged }) => converged.firstWriteMs)), 1000),
  ];
}

/** CPU time an object with the most objects, to that with the fewest. */
function scaleTargets({ suites }: Results): readonly Target[] {
  const sorted = suites.filter((suite) => runsOf(suite, 'kindred').length > 0).sort((a, b) => a.objects - b.objects);
  const [few, many] = [sorted[0], sorted.at(-1)];
  if (few === undefined || many === undefined || many.objects < 10 * few.objects) return [];
  const between = `${String(many.objects)} to ${String(few.objects)}`;
  const cpu = (suite: Suite): number =>
    median(runsOf(suite, 'kindred').map(({ converged }) => converged.cpuSeconds)) / suite.objects;
  const time = (suite: Suite): number =>
    1 / median(runsOf(suite, 'kindred').map(({ converged }) => converged.objectsPerSecond));
  return [
    atMost(`CPU time an object, ${between}`, cpu(many) / cpu(few), 1.1),
    atMost(`time an object, ${between}`, time(many) / time(few), 1.1),
  ];
}

function latencyTargets({ suites, busy }: Results): readonly Target[] {
  const all = (of: (edits: Edits) => readonly number[]): readonly number[] =>
    suites.flatMap((suite) => runsOf(suite, 'kindred').flatMap(({ edits }) => (edits === undefined ? [] : of(edits))));
  const idle = [...all(({ first }) => first), ...all(({ later }) => later)];
  const quiet =
    idle.length === 0
      ? []
      : [
          atMost('idle: edit to child ms, p50', quantile(idle, 0.5), 10),
          atMost('idle: edit to child ms, p99', quantile(idle, 0.99), 50),
        ];
  const mine = busy.kindred;
  if (mine === undefined) return quiet;
  const name = `while ${String(mine.objects)} others are brought about: edit to child ms, p99`;
  return [...quiet, atMost(name, quantile(mine.toChild, 0.99), 500)];
}

function synthTargets({ synth }: Results): readonly Target[] {
  if (synth === undefined || synth.kustomize.length === 0) return [];
  const most = median(synth.kustomize) + median(synth.node);
  return [
    atMost('npm run synth ms, to kustomize build and the start of Node', median(synth.npm), most),
    atMost('kindred synth ms, to the same', median(synth.bundle), most),
  ];
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function atLeast(name: string, measured: number, least: number): Target {
  return { name, target: `>= ${rounded(least)}`, measured, held: measured >= least };
}

function atMost(name: string, measured: number, most: number): Target {
  return { name, target: `<= ${rounded(most)}`, measured, held: measured <= most };
}

function rounded(value: number): string {
  return String(Number(value.toPrecision(4)));
}
