import { barChart } from './bar-chart';
import type { Bar, Panel } from './bar-chart';
import { labels } from './labels';
import { limitsOf, operatorsOf, rateOf, runsOf } from './measures';
import { operators } from './results';
import type { OperatorRun, Results, Suite } from './results';
import { quantile, summarize } from './statistics';

/** The pictures of these results, by file name. */
export function charts({ suites, busy }: Results): ReadonlyMap<string, string> {
  const compared = suites.filter((suite) => operatorsOf(suite).length > 1);
  const costs = compared.flatMap((suite) => [
    costPanel('CPU seconds', suite, ({ converged }) => converged.cpuSeconds),
    costPanel('peak memory, MiB', suite, ({ converged }) => converged.peakMiB),
    costPanel('writes after a restart', suite, ({ restarted }) => restarted.writeCount),
  ]);
  const waits = operators.flatMap((name): readonly Bar[] => {
    const measured = busy[name];
    if (measured === undefined) return [];
    const [value, low, high] = [0.5, 0, 0.99].map((q) => quantile(measured.toChild, q)) as [number, number, number];
    return [{ label: labels[name], value, low, high, own: name === 'kindred' }];
  });
  const idle = idlePanel(compared);
  const others = busy.kindred?.objects ?? 0;
  const latency = [
    ...(idle.bars.length === 0 ? [] : [idle]),
    ...(waits.length === 0
      ? []
      : [
          {
            title: `spec edit to child while ${String(others)} others are brought about, ms: p50, to p99`,
            bars: waits,
          },
        ]),
  ];
  return new Map([
    ['throughput.svg', barChart('Objects a second, by operator', compared.map(ratePanel))],
    ['cost.svg', barChart('CPU time, memory and writes after a restart, by operator', costs)],
    ['latency.svg', barChart('Time from the edit of a spec to the change of its child, by operator', latency)],
  ]);
}

function ratePanel(suite: Suite): Panel {
  const bars = [...operatorsOf(suite), ...limitsOf(suite)].map((name) => {
    const values = suite.rounds.flatMap((round) => rateOf(round, name) ?? []);
    return bar(labels[name], values, name === 'kindred');
  });
  return { title: `objects a second, ${String(suite.objects)} objects`, bars };
}

function costPanel(what: string, suite: Suite, of: (run: OperatorRun) => number): Panel {
  const bars = operatorsOf(suite).map((name) => bar(labels[name], runsOf(suite, name).map(of), name === 'kindred'));
  return { title: `${what}, ${String(suite.objects)} objects`, bars };
}

function idlePanel(suites: readonly Suite[]): Panel {
  const bars = operators.flatMap((name): readonly Bar[] => {
    const values = suites.flatMap((suite) => runsOf(suite, name).flatMap(({ edits }) => edits?.later ?? []));
    if (values.length === 0) return [];
    const { median: value, min: low, p99: high } = summarize(values);
    return [{ label: labels[name], value, low, high, own: name === 'kindred' }];
  });
  return { title: 'spec edit to child when idle, ms: p50, to p99', bars };
}

function bar(label: string, values: readonly number[], own: boolean): Bar {
  const { median: value, min: low, max: high } = summarize(values);
  return { label, value, low, high, own };
}
