import { labels } from './labels';
import { busyEditsOf, editsOf } from './measures';
import { operators } from './results';
import type { BusyEdits, Results } from './results';
import { spread, spreadOf } from './section';
import type { Section } from './section';
import { quantile, summarize } from './statistics';
import { figure } from './table';

const latencies = ['n', 'p50', 'p99', 'min', 'max'];

function latencyRow(name: string, values: readonly number[]): readonly (readonly string[])[] {
  if (values.length === 0) return [];
  const { count, median, p99, min, max } = summarize(values);
  return [[name, String(count), ...[median, p99, min, max].map(figure)]];
}

/** Edits when there is nothing else to do. */
export function idle(results: Results): Section {
  const rows = operators.flatMap((name) => {
    const edits = editsOf(results, name);
    const row = (what: string, key: 'first' | 'later' | 'request'): readonly (readonly string[])[] =>
      latencyRow(
        `${labels[name]}: ${what}`,
        edits.flatMap((each) => each[key]),
      );
    return [
      ...row('first edit of an object', 'first'),
      ...row('later edit', 'later'),
      ...row('the edit itself, answered', 'request'),
    ];
  });
  return { title: 'idle: spec edit to child, ms, all rounds together', heading: ['', ...latencies], rows };
}

/** Edits while others are worked on, each round by itself: how fast the server was differs more between rounds than within one. */
export function busy(results: Results): Section {
  const rows = operators.flatMap((name) => {
    const rounds = busyEditsOf(results, name);
    if (rounds.length === 0) return [];
    const row = (what: string, of: (edits: BusyEdits) => number): readonly string[] => [
      `${labels[name]}: ${what}`,
      ...spreadOf(rounds.map(of)),
    ];
    return [
      row('edits', ({ toChild }) => toChild.length),
      row('p50', ({ toChild }) => quantile(toChild, 0.5)),
      row('p99', ({ toChild }) => quantile(toChild, 0.99)),
      row('slowest', ({ toChild }) => quantile(toChild, 1)),
      row('the edit itself, answered, p50', ({ request }) => quantile(request, 0.5)),
      row('the edit itself, answered, p99', ({ request }) => quantile(request, 0.99)),
    ];
  });
  const title = `busy: spec edit to child while ${String(results.busy?.objects)} others are brought about, ms`;
  return { title, heading: ['', ...spread], rows };
}

/** Writing the platform. */
export function synth({ synth: measured }: Results): Section {
  const title = 'the platform as YAML, ms';
  const heading = ['', ...latencies];
  if (measured === undefined) return { title, heading, rows: [] };
  const rows = [
    ...latencyRow('npm run synth', measured.npm),
    ...latencyRow('kindred synth (bundled)', measured.bundle),
    ...latencyRow('kustomize build of the same output', measured.kustomize),
    ...latencyRow('start of Node', measured.node),
  ];
  return { title, heading, rows };
}
