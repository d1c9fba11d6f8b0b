import { barChart } from './bar-chart';
import type { Bar, Panel } from './bar-chart';
import { labels } from './labels';
import { busyEditsOf, editsOf, limitRunsOf, limitsOf, operatorsOf, rateOf, runsOf } from './measures';
import { operators } from './results';
import type { LimitName, LimitRun, OperatorName, OperatorRun, Results, Suite } from './results';
import { quantile, summarize } from './statistics';

/** The pictures of these results, by file name. */
export function charts(results: Results): ReadonlyMap<string, string> {
  const compared = results.suites.filter((suite) => operatorsOf(suite).length > 1);
  const costs = compared.flatMap((suite) => [
    costPanel(
      'CPU seconds',
      suite,
      ({ converged }) => converged.cpuSeconds,
      (limit) => limit.cpuSeconds,
    ),
    costPanel(
      'peak memory, MiB',
      suite,
      ({ converged }) => converged.peakMiB,
      (limit) => limit.peakMiB,
    ),
    costPanel('writes after a restart', suite, ({ restarted }) => restarted.writeCount),
  ]);
  const others = String(results.busy?.objects);
  const latency = [
    idlePanel('first spec edit of an object to child when idle, ms: p50, to p99', results, 'first'),
    idlePanel('later spec edit to child when idle, ms: p50, to p99', results, 'later'),
    busyPanel(`spec edit to child while ${others} others are brought about, ms: p50`, results, 0.5),
    busyPanel(`spec edit to child while ${others} others are brought about, ms: p99`, results, 0.99),
  ].filter(({ bars }) => bars.length > 0);
  return new Map([
    ['throughput.svg', barChart('Objects a second, by operator', compared.map(ratePanel))],
    ['cost.svg', barChart('CPU time, memory and writes after a restart, by operator', costs)],
    ['latency.svg', barChart('Time from the edit of a spec to the change of its child, by operator', latency)],
  ]);
}

function ratePanel(suite: Suite): Panel {
  const bars = [...operatorsOf(suite), ...limitsOf(suite)].map((name) => {
    return bar(
      name,
      suite.rounds.flatMap((round) => rateOf(round, name) ?? []),
    );
  });
  return { title: `objects a second, ${String(suite.objects)} objects`, bars };
}

/** @param ofLimit the same of a bare loop; without it, only operators have such a cost */
function costPanel(
  what: string,
  suite: Suite,
  of: (run: OperatorRun) => number,
  ofLimit?: (run: LimitRun) => number,
): Panel {
  const bars = operatorsOf(suite).map((name) => bar(name, runsOf(suite, name).map(of)));
  const bare = ofLimit && limitsOf(suite).map((name) => bar(name, limitRunsOf(suite, name).map(ofLimit)));
  return { title: `${what}, ${String(suite.objects)} objects`, bars: [...bars, ...(bare ?? [])] };
}

/** The line goes to the p99 of all rounds together: there are too few edits in one. */
function idlePanel(title: string, results: Results, key: 'first' | 'later'): Panel {
  const bars = operators.flatMap((name): readonly Bar[] => {
    const values = editsOf(results, name).flatMap((edits) => edits[key]);
    if (values.length === 0) return [];
    const { median: value, min: low, p99: high } = summarize(values);
    return [{ label: labels[name], value, low, high, own: name === 'kindred' }];
  });
  return { title, bars };
}

/** The line is the range of the rounds. */
function busyPanel(title: string, results: Results, q: number): Panel {
  const bars = operators.flatMap((name): readonly Bar[] => {
    const rounds = busyEditsOf(results, name).map(({ toChild }) => quantile(toChild, q));
    return rounds.length === 0 ? [] : [bar(name, rounds)];
  });
  return { title, bars };
}

/** The median of the rounds, and their range. */
function bar(name: OperatorName | LimitName, values: readonly number[]): Bar {
  const { median: value, min: low, max: high } = summarize(values);
  return { label: labels[name], value, low, high, own: name === 'kindred' };
}
