import { readOptions } from './operator/options';

test('the defaults', () => {
  expect(readOptions([])).toEqual({ objects: 1000, rounds: 3, edits: 200, concurrency: 32, out: 'dist/bench.json' });
});

test.each([
  [['--objects=0'], '--objects=0: it must be a whole number above 0'],
  [['--rounds=x'], '--rounds=x: it must be a whole number above 0'],
  [['--objects=10', '--edits=31'], '--edits=31: at most one for each of the objects of every round'],
])('%p is refused', (argv, message) => {
  expect(() => readOptions(argv)).toThrow(message);
});
