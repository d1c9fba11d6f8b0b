import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder';

const root = join(__dirname, '..', '..');
const folder = temporaryFolder('kindred-test-summary-');
const report = join(folder, 'report.json');

/** Runs Jest as this project does, one file after the other in one process. @returns its exit code */
function runJest(files: Readonly<Record<string, string>>): number | null {
  const tests = join(folder, 'test');
  mkdirSync(tests);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(tests, name), text);
  const { projects } = jest.requireActual<{ projects: readonly { transform: object }[] }>('../../jest.config.js');
  const config = {
    rootDir: folder,
    testMatch: ['**/*.test.js'],
    testEnvironment: join(root, 'test/support/jest/environment.ts'),
    transform: Object.fromEntries(
      Object.entries(projects[0]!.transform).map(([key, [, options]]: [string, [string, object]]) => [
        key,
        [require.resolve('@swc/jest'), options],
      ]),
    ),
    testSequencer: join(folder, 'by-name.cjs'),
  };
  writeFileSync(
    config.testSequencer,
    `const { default: Sequencer } = require(${JSON.stringify(require.resolve('@jest/test-sequencer'))});
     module.exports = class extends Sequencer { sort(tests) { return [...tests].sort((a, b) => (a.path < b.path ? -1 : 1)); } };`,
  );
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify(config));
  const program = join(root, 'node_modules/jest/bin/jest.js');
  const args = [
    '--ci',
    '--runInBand',
    '--json',
    `--outputFile=${report}`,
    '--config',
    join(folder, 'jest.config.json'),
  ];
  return spawnSync(process.execPath, [program, ...args], { cwd: folder, encoding: 'utf8' }).status;
}

/** What `npm test` prints at its end. */
function summarize(code: number | null, file = report): readonly string[] {
  const module = pathToFileURL(join(root, 'scripts', 'test-summary.mjs')).href;
  const program = `
    import { readFileSync } from 'node:fs';
    import { failureLines, jestCounts, sum, summaryLine } from '${module}';
    const [, file, root, code] = process.argv;
    const counts = jestCounts({ code: Number(code), root, readReport: () => readFileSync(file, 'utf8') });
    console.log([...failureLines(sum([counts])), summaryLine(counts)].join('\\n'));`;
  const args = ['--input-type=module', '--eval', program, '--', file, folder, String(code)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd().split('\n');
}

test('what failed is listed with its file and the first line of its error, and a rejection with the file that left it', () => {
  const code = runJest({
    'a.test.js': `test('passes', () => { setTimeout(() => void (async () => { throw new Error('left') })(), 500) }); test.skip('later', () => {});`,
    'b.test.js': `test('waits', () => new Promise((resolve) => setTimeout(resolve, 1500)));`,
    'c.test.js': `describe('numbers', () => { test('are equal', () => { expect(1).toBe(2) }) });`,
    'd.test.js': `require('./missing');`,
  });
  expect(code).toBe(1);
  expect(summarize(code)).toEqual([
    'FAILED the file could not be run, or left an error behind (test/b.test.js)',
    expect.stringMatching(/^ {2}an unhandled rejection of .*\/test\/a\.test\.js, which had ended: left$/),
    'FAILED numbers are equal (test/c.test.js)',
    '  Error: expect(received).toBe(expected) // Object.is equality',
    'FAILED the file could not be run, or left an error behind (test/d.test.js)',
    "  Cannot find module './missing' from 'test/d.test.js'",
    '2 passed, 3 failed, 1 skipped',
  ]);
  // A failure that no test had.
  writeFileSync(report, JSON.stringify({ testResults: [], numPassedTests: 0, numPendingTests: 0 }));
  expect(summarize(1)).toEqual([
    'FAILED Jest',
    '  it ended with 1 although no test failed; see its output above',
    '0 passed, 1 failed',
  ]);
});

test.each([
  ['no report', undefined, /^ {2}there is no report: ENOENT/],
  ['half a report', '{', /^ {2}there is no report: .*JSON/],
])('a run that left %s has failed, whatever its exit code', (_, text, error) => {
  const file = join(folder, 'other.json');
  if (text !== undefined) writeFileSync(file, text);
  expect(summarize(0, file)).toEqual(['FAILED Jest', expect.stringMatching(error), '0 passed, 1 failed']);
});
