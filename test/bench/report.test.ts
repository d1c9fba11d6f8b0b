import { report } from '../../bench/report';
import { bare, resultsOf, run } from './results';

const edits = { first: [20], later: [10, 12], request: [4] };
const results = resultsOf(
  [
    {
      operators: { kindred: run(80, {}, edits), tuned: run(40), plain: run(20) },
      limits: { same: bare(100), apply: bare(90) },
    },
    {
      operators: { kindred: run(95, {}, edits), tuned: run(50), plain: run(10) },
      limits: { same: bare(100), apply: bare(95) },
    },
    {
      operators: { kindred: run(60, {}, edits), tuned: run(60), plain: run(30) },
      limits: { same: bare(120), apply: bare(80) },
    },
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
    'Kubernetes v1.36.3, concurrency 32 (16 of a backlog), 16 workers in the twins',
    'skipped: kustomize: there is no `go` on PATH to build it',
  ]);
});

test.each([
  [{ commit: 'abc1234', dirty: false }, ['--full', '--rounds=3'], ['code: abc1234', 'arguments: --full --rounds=3']],
  [{ commit: 'abc1234', dirty: true }, [], ['code: abc1234 with changes that are not committed', 'arguments: none']],
  [{ commit: '-', dirty: false }, [], ['code: -', 'arguments: none']],
])('it tells of the code %j and of the arguments %j', (code, args, lines) => {
  expect(
    report({ ...results, code, args })
      .split('\n')
      .slice(2, 4),
  ).toEqual(lines);
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
  const text = report(resultsOf([{ operators: { kindred: run(80) }, limits: { same: bare(100) } }]));
  expect(cells(text, 'Kindred').slice(0, 3)).toEqual(['80', '80', '80']);
  expect(text).not.toContain('controller-runtime');
});

test('a bare loop is told of with what it costs', () => {
  const lines = report(results).split('\n');
  const at = lines.findIndex((line) => line.startsWith('bare requests (POST + apply), 10 objects'));
  expect(lines.slice(at + 1, at + 4).map((line) => line.split(/\s{2,}/).slice(0, 2))).toEqual([
    ['objects/s', '100'],
    ['CPU s', '0.750'],
    ['peak RSS MiB', '55'],
  ]);
});

test('busy edits are told round by round; a round without one is left out', () => {
  const of = (...toChild: number[]) => ({ kindred: { toChild, request: toChild.map((ms) => ms / 2) } });
  const text = report({ ...results, busy: { objects: 50, rounds: [of(10, 20, 30), of(), of(40, 50, 60)] } });
  expect(text).toContain('busy: spec edit to child while 50 others are brought about, ms');
  expect(cells(text, 'Kindred: p50')).toEqual(['35', '20', '50', '20', '50']);
  expect(cells(text, 'Kindred: slowest')).toEqual(['45', '30', '60', '30', '60']);
  expect(cells(text, 'Kindred: edits')).toEqual(['3', '3', '3', '3', '3']);
  expect(cells(text, 'Kindred: the edit itself, answered, p50')).toEqual(['17.50', '10', '25', '10', '25']);
});

test('a promise is told with its range and its rounds; a single round is marked', () => {
  const text = report(results);
  expect(cells(text, 'objects/s to the tuned twin at 10')).toEqual(['>=', '1.3', '1.900', '1', '2', '3', 'undecided']);
  expect(cells(text, 'writes an object at 10').at(-1)).toBe('held');
  const once = report(resultsOf([{ operators: { kindred: run(80) }, limits: {} }]));
  expect(cells(once, 'writes an object at 10').slice(-4)).toEqual(['1', 'held', '(one', 'round)']);
});
