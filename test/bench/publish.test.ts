import { markdown, replaced } from '../../bench/publish';
import { bare, resultsOf, run } from './results';

const begin = '<!-- results: written by `npm run bench -- --publish`, not by hand -->';
const end = '<!-- end of results -->';

test('only what stands between the marks is replaced', () => {
  expect(replaced(`# A\n${begin}\nold\n${end}\nrest\n`, 'new', 'page')).toBe(`# A\n${begin}\n\nnew\n\n${end}\nrest\n`);
});

test('a page without marks is an error that says what to put where', () => {
  expect(() => replaced('# A\n', 'new', 'docs/benchmarks.md')).toThrow('docs/benchmarks.md: put these two lines');
});

test('the machine is told in general words', () => {
  const [first] = markdown(resultsOf([])).split('\n');
  expect(first).toBe('- 2 cores, 8 GiB, Linux, Node v20.19.0, load 0.5 at the start');
});

test('the load at the end is told where it is known', () => {
  const { machine, ...rest } = resultsOf([]);
  const [first] = markdown({ ...rest, machine: { ...machine, loadAfter: 3.25 } }).split('\n');
  expect(first).toContain("load 0.5 at the start, 3.25 at the end (the benchmark's own work included)");
});

test('each part is a table', () => {
  const text = markdown(resultsOf([{ operators: { kindred: run(80) }, limits: { same: bare(100) } }]));
  expect(text).toContain('- Kubernetes v1.36.3, concurrency 32 (16 of a backlog), 16 workers in the twins');
  expect(text).toContain(
    '### Objects/s, 10 objects\n\n|  | median | min | max | rounds |\n| --- | --: | --: | --: | --: |',
  );
  expect(text).toContain('| Kindred | 80 | 80 | 80 | 80 |');
  expect(text).toContain('### Targets\n\nheld, MISSED: so in every round.');
});
