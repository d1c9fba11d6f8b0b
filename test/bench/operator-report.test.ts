import { operatorReport, ratio } from '../../bench/operator-report';
import type { OperatorResults, Round } from '../../bench/operator-results';

function round(operator: number, before: number, after: number): Round {
  const used = { cpuSeconds: 1.5, peakMiB: 90 };
  const writes = { 'create deployments 201': 10, 'patch helloapps/status 200': 10 };
  return {
    limits: [{ objectsPerSecond: before }, { objectsPerSecond: after }],
    converged: {
      ...{ objectsPerSecond: operator, writes, writesPerObject: 2, events: 0, ...used },
      ...{ firstWriteMs: 400, convergedMs: 900 },
    },
    restarted: { writes: {}, writeCount: 0, events: 0, reconcilingMs: 300, ...used },
    edits: { first: [20], later: [10, 12], request: [4] },
  };
}

const results: OperatorResults = {
  machine: { cpus: 2, model: 'Some CPU', memoryGiB: 8, system: 'Linux 6', node: 'v20.19.0', load: 0.5 },
  kubernetes: 'v1.36.3',
  objects: 10,
  concurrency: 32,
  rounds: [round(80, 100, 100), round(95, 100, 100), round(60, 80, 240)],
};

function cells(text: string, name: string): readonly string[] {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `)) ?? '';
  return line.slice(name.length).trim().split(/\s+/);
}

test('the ratio is taken within a round, to the time that both bare runs took', () => {
  expect(results.rounds.map(ratio)).toEqual([0.8, 0.95, 0.5]);
  expect(cells(operatorReport(results), 'converge / bare requests')).toEqual([
    ...['0.800', '0.500', '0.950'],
    ...['0.800', '0.950', '0.500'],
  ]);
  expect(cells(operatorReport(results), 'bare requests after / before').slice(0, 3)).toEqual(['1', '1', '3']);
});

test('it begins with the machine', () => {
  const [machine, what] = operatorReport(results).split('\n');
  expect(machine).toBe('2 x Some CPU, 8 GiB, Linux 6, Node v20.19.0, load 0.5 at the start');
  expect(what).toBe('Kubernetes v1.36.3, 10 HelloApps, concurrency 32, 3 rounds');
});

test('the edits of all rounds are told together', () => {
  const text = operatorReport(results);
  expect(cells(text, 'first edit of an object to its child')).toEqual(['3', '20', '20', '20', '20']);
  expect(cells(text, 'later edit to the child')).toEqual(['6', '11', '12', '10', '12']);
});

test('each kind of write is told, a missing one as 0', () => {
  const [first, ...rest] = results.rounds;
  const more = { ...first!, converged: { ...first!.converged, writes: { 'patch deployments 409': 1 } } };
  const text = operatorReport({ ...results, rounds: [more, ...rest] });
  expect(cells(text, 'create deployments 201')).toEqual(['10', '0', '10']);
  expect(cells(text, 'patch deployments 409')).toEqual(['0', '0', '1']);
});
