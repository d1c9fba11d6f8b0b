import { reportedArguments, readOptions } from '../../bench/options';

const defaults = {
  ...{ objects: [1000], scale: 0, rounds: 2, edits: 100, busy: 1000, concurrency: 32, synth: true },
  ...{ out: 'dist/bench.json', from: '', publish: false, bundle: '' },
};

test('the defaults', () => {
  expect(readOptions([])).toEqual(defaults);
});

test('--full measures more, and less where it is told', () => {
  expect(readOptions(['--full'])).toEqual({ ...defaults, objects: [1000, 5000], scale: 20_000, rounds: 4, busy: 5000 });
  expect(readOptions(['--full', '--scale=0', '--rounds=1'])).toMatchObject({ scale: 0, rounds: 1, busy: 5000 });
});

test('--help', () => {
  expect(readOptions(['--help'])).toBe('help');
});

test.each([
  [['--objects=0'], '--objects=0: it must be a whole number, 1 or more'],
  [['--objects=10,'], '--objects=: it must be a whole number, 1 or more'],
  [['--rounds=x'], '--rounds=x: it must be a whole number, 1 or more'],
  [['--objects=10', '--edits=31'], '--edits=31: at most one for each of the objects of every round'],
])('%p is refused', (argv, message) => {
  expect(() => readOptions(argv)).toThrow(message);
});

test('with the results it is told what decided them, and no path', () => {
  const argv = ['--full', '--rounds', '3', '--out=/home/a/b.json', '--bundle', '/home/a/operator.cjs', '--publish'];
  expect(reportedArguments(argv)).toEqual(['--full', '--rounds=3', '--bundle']);
  expect(reportedArguments([])).toEqual([]);
});
