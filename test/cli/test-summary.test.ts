import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Jest does not load ES modules; Node does. */
function evaluate(expression: string): unknown {
  const module = join(__dirname, '..', '..', 'scripts', 'test-summary.mjs');
  const script = `import * as m from ${JSON.stringify(module)}; console.log = () => {}; process.stdout.write(JSON.stringify(${expression}));`;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
}

const report = (passed: number, failed: number, broken = 0): string =>
  `() => JSON.stringify({ numPassedTests: ${passed}, numFailedTests: ${failed}, numRuntimeErrorTestSuites: ${broken} })`;

test.each([
  ['all passed', 0, report(5, 0), { passed: 5, failed: 0 }],
  ['a test failed', 1, report(5, 1), { passed: 5, failed: 1 }],
  ['a file could not be run', 1, report(5, 1, 2), { passed: 5, failed: 3 }],
  ['Jest failed though no test did', 1, report(5, 0), { passed: 5, failed: 1 }],
  ['Jest left no report', 1, '() => { throw new Error() }', { passed: 0, failed: 1 }],
  ['Jest left half a report', 0, '() => "{"', { passed: 0, failed: 1 }],
])('%s', (_, code, read, counts) => expect(evaluate(`m.jestCounts(${code}, ${read})`)).toEqual(counts));

test('the last line', () => {
  expect(evaluate('m.summaryLine(m.sum([{ passed: 120, failed: 0 }, { passed: 3, failed: 2 }]))')).toBe(
    '123 passed, 2 failed',
  );
});
