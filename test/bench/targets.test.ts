import { targetsOf } from '../../bench/targets';
import type { Results } from '../../bench/results';
import { bare, resultsOf, run } from './results';

function verdicts(results: Results): Readonly<Record<string, string>> {
  return Object.fromEntries(targetsOf(results).map(({ name, verdict }) => [name, verdict]));
}

test('each promise of a suite is held against its own figure', () => {
  const ours = run(300, { cpuSeconds: 1, peakMiB: 120 });
  const tuned = run(240, { cpuSeconds: 1.2, peakMiB: 60 });
  const limits = { same: bare(400), apply: bare(500) };
  expect(verdicts(resultsOf([{ operators: { kindred: ours, tuned, plain: run(140) }, limits }]))).toEqual({
    'objects/s to the plain twin at 10': 'held',
    'objects/s to the tuned twin at 10': 'MISSED',
    'objects/s to the same bare requests at 10': 'held',
    'objects/s to bare applies at 10': 'MISSED',
    'writes an object at 10': 'held',
    'CPU s to the tuned twin at 10': 'held',
    'peak RSS to the tuned twin at 10': 'MISSED',
    'writes after a restart at 10': 'held',
    'start to first write ms at 10': 'held',
  });
});

test('what was not measured is neither held nor missed', () => {
  const names = Object.keys(verdicts(resultsOf([{ operators: { kindred: run(300) }, limits: {} }])));
  expect(names).toEqual(['writes an object at 10', 'writes after a restart at 10', 'start to first write ms at 10']);
});

test('a figure that is none is not measured', () => {
  const unknown = { cpuSeconds: NaN };
  const results = resultsOf([{ operators: { kindred: run(300, unknown), tuned: run(100, unknown) }, limits: {} }]);
  expect(verdicts(results)['CPU s to the tuned twin at 10']).toBe('not measured');
});

test.each([
  [[140, 150], 'held'],
  [[120, 125], 'MISSED'],
  [[120, 200], 'undecided'],
])('at %p of 100 in the rounds, a ratio of 1.3 is %s', (rates, verdict) => {
  const rounds = rates.map((rate) => ({ operators: { kindred: run(rate), tuned: run(100) }, limits: {} }));
  expect(verdicts(resultsOf(rounds))['objects/s to the tuned twin at 10']).toBe(verdict);
});

describe('with many more objects', () => {
  const suite = (objects: number, rate: number, ...cpu: number[]): Results['suites'][number] => ({
    objects,
    rounds: cpu.map((cpuSeconds) => ({ operators: { kindred: run(rate, { cpuSeconds }) }, limits: {} })),
  });
  const further = 'CPU s of each further object, from 5000 to 20000 against from 1000 to 5000';

  test('CPU time is that of each further object, whatever the start takes', () => {
    // 2 s of start and 1 ms an object, then 1.2 ms: on average, an object costs less than half of what it does with 1000.
    const suites = [suite(1000, 400, 3), suite(5000, 400, 7), suite(20_000, 300, 25)];
    const targets = targetsOf(resultsOf([], { suites }));
    expect(targets.find(({ name }) => name === further)).toEqual({
      ...{ name: further, target: '<= 1.1', values: [expect.closeTo(1.2, 10)], rounds: 1, verdict: 'MISSED' },
    });
    expect(verdicts(resultsOf([], { suites }))['time an object, 20000 to 1000']).toBe('MISSED');
  });

  test('every combination of rounds counts, and the fewest rounds are told', () => {
    const suites = [suite(1000, 400, 3, 3), suite(5000, 400, 7, 7.4), suite(20_000, 400, 23.5)];
    const target = targetsOf(resultsOf([], { suites })).find(({ name }) => name === further);
    expect(target).toMatchObject({ rounds: 1, verdict: 'held' });
    expect(target?.values).toHaveLength(4);
    expect(verdicts(resultsOf([], { suites }))['time an object, 20000 to 1000']).toBe('held');
  });

  test('nothing is said of less than ten times as many, and of CPU time without a suite between', () => {
    const near = verdicts(resultsOf([], { suites: [suite(1000, 400, 1), suite(2000, 400, 2), suite(5000, 300, 21)] }));
    expect(Object.keys(near).join()).not.toMatch(/(further|time an) object/);
    const two = verdicts(resultsOf([], { suites: [suite(1000, 400, 1), suite(20_000, 400, 21)] }));
    expect(Object.keys(two).join()).not.toContain('further object');
    expect(two['time an object, 20000 to 1000']).toBe('held');
  });
});

test('latencies round by round; synth against kustomize and Node of the same turn', () => {
  const slow = { first: [12, 12], later: [8, 9, 9, 60], request: [] };
  const fast = { first: [12, 8], later: [8, 9, 9, 40], request: [] };
  const rounds = [slow, fast].map((edits) => ({ operators: { kindred: run(1, {}, edits) }, limits: {} }));
  const busy = [[100, 400], [], [100, 600]].map((toChild) => ({ kindred: { toChild, request: [] } }));
  const results = resultsOf(rounds, {
    busy: { objects: 5000, rounds: busy },
    synth: { npm: [900, 900], bundle: [200, 240], kustomize: [150, 150], node: [60, 60] },
  });
  expect(verdicts(results)).toMatchObject({
    'idle: edit to child ms, p50': 'undecided',
    'idle: edit to child ms, p99': 'undecided',
    'while 5000 others are brought about: edit to child ms, p99': 'undecided',
    'npm run synth, to kustomize build and the start of Node': 'MISSED',
    'kindred synth, to the same': 'undecided',
  });
});
