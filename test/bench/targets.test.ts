import { targetsOf } from '../../bench/targets';
import type { Results } from '../../bench/results';
import { resultsOf, run } from './results';

function held(results: Results): Readonly<Record<string, boolean>> {
  return Object.fromEntries(targetsOf(results).map(({ name, held: holds }) => [name, holds]));
}

test('each promise of a suite is held against its own figure', () => {
  const ours = run(300, { cpuSeconds: 1, peakMiB: 120 });
  const tuned = run(240, { cpuSeconds: 1.2, peakMiB: 60 });
  const limits = { same: 400, apply: 500 };
  expect(held(resultsOf([{ operators: { kindred: ours, tuned, plain: run(140) }, limits }]))).toEqual({
    'objects/s to the plain twin at 10': true,
    'objects/s to the tuned twin at 10': false,
    'objects/s to the same bare requests at 10': true,
    'objects/s to bare applies at 10': false,
    'writes an object at 10': true,
    'CPU s, to the tuned twin at 10': true,
    'peak RSS MiB, to the tuned twin at 10': false,
    'writes after a restart at 10': true,
    'start to first write ms at 10': true,
  });
});

test('what was not measured is neither held nor missed', () => {
  const names = Object.keys(held(resultsOf([{ operators: { kindred: run(300) }, limits: {} }])));
  expect(names).toEqual(['writes an object at 10', 'writes after a restart at 10', 'start to first write ms at 10']);
});

test('a figure that is none is missed', () => {
  const unknown = { cpuSeconds: NaN };
  const results = resultsOf([{ operators: { kindred: run(300, unknown), tuned: run(100, unknown) }, limits: {} }]);
  expect(held(results)['CPU s, to the tuned twin at 10']).toBe(false);
});

test('costs an object are compared from ten times as many on', () => {
  const suite = (objects: number, rate: number, cpuSeconds: number): Results['suites'][number] => ({
    objects,
    rounds: [{ operators: { kindred: run(rate, { cpuSeconds }) }, limits: {} }],
  });
  const results = resultsOf([], { suites: [suite(1000, 400, 1), suite(20_000, 300, 21)] });
  expect(held(results)).toMatchObject({
    'CPU time an object, 20000 to 1000': true,
    'time an object, 20000 to 1000': false,
  });
  expect(
    Object.keys(held(resultsOf([], { suites: [suite(1000, 400, 1), suite(5000, 300, 21)] }))).join(),
  ).not.toContain('an object, 5000');
});

test('latencies: idle ones of all rounds, busy ones by their p99; synth against kustomize and Node together', () => {
  const edits = { first: [12, 12], later: [8, 9, 9, 60], request: [] };
  const results = resultsOf([{ operators: { kindred: run(1, {}, edits) }, limits: {} }], {
    busy: { kindred: { objects: 5000, toChild: [100, 400], request: [] } },
    synth: { npm: [900], bundle: [200], kustomize: [150], node: [60] },
  });
  expect(held(results)).toMatchObject({
    'idle: edit to child ms, p50': false,
    'idle: edit to child ms, p99': false,
    'while 5000 others are brought about: edit to child ms, p99': true,
    'npm run synth ms, to kustomize build and the start of Node': false,
    'kindred synth ms, to the same': true,
  });
});
