import { report } from '../../bench/report';
import { resultsOf, run } from './results';

const edits = { first: [20], later: [10, 12], request: [4] };
const results = resultsOf(
  [
    { operators: { kindred: run(80, {}, edits), tuned: run(40), plain: run(20) }, limits: { same: 100, apply: 90 } },
    { operators: { kindred: run(95, {}, edits), tuned: run(50), plain: run(10) }, limits: { same: 100, apply: 95 } },
    { operators: { kindred: run(60, {}, edits), tuned: run(60), plain: run(30) }, limits: { same: 120, apply: 80 } },
  ],
  { skipped: ['kustomize: there is no `go` on PATH to build it'] },
);

function cells(text: string, name: string): readonly string[] {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `)) ?? '';
  return line.slice(name.length).trim().split(/\s+/);
}

test('the ratios are taken within a round', () => {
  const text = report(results);
  expect(cells(text, 'Kindred / controller-runtime, tuned')).toEqual(['1.900', '1', '2', '2', '1.900', '1']);
  expect(cells(text, 'Kindred / controller-runtime, plain').slice(0, 3)).toEqual(['4', '2', '9.500']);
  expect(cells(text, 'Kindred / bare requests (POST + apply)').slice(3)).toEqual(['0.800', '0.950', '0.500']);
});

test('it begins with the machine, and with what is missing', () => {
  expect(report(results).split('\n').slice(0, 3)).toEqual([
    '2 x Some CPU, 8 GiB, Linux 6, Node v20.19.0, load 0.5 at the start',
    'Kubernetes v1.36.3, concurrency 32, 16 workers in the twins',
    'skipped: kustomize: there is no `go` on PATH to build it',
  ]);
});

test('a machine with other work is called noisy', () => {
  const { machine } = results;
  expect(report({ ...results, machine: { ...machine, load: 2 } })).not.toContain('noisy');
  expect(report({ ...results, machine: { ...machine, load: 2.1 } })).toContain('\nnoisy: ');
});

test('the edits of all rounds are told together', () => {
  const text = report(results);
  expect(cells(text, 'Kindred: first edit of an object')).toEqual(['3', '20', '20', '20', '20']);
  expect(cells(text, 'Kindred: later edit')).toEqual(['6', '11', '12', '10', '12']);
});

test('requests stand by verb and code, one column an operator, a missing one as 0', () => {
  const odd = run(20, { requests: { 'patch 409': 3 } });
  const text = report(resultsOf([{ operators: { kindred: run(40), plain: odd }, limits: {} }]));
  expect(cells(text, 'create 201')).toEqual(['10', '0']);
  expect(cells(text, 'patch 409')).toEqual(['0', '3']);
});

test('without the twins, our operator is told alone', () => {
  const text = report(resultsOf([{ operators: { kindred: run(80) }, limits: { same: 100 } }]));
  expect(cells(text, 'Kindred').slice(0, 3)).toEqual(['80', '80', '80']);
  expect(text).not.toContain('controller-runtime');
});
