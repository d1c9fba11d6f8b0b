// Runs the tests. `node scripts/test.mjs --help` says how; test/README.md says what runs when.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runJest } from './run-jest.mjs';
import { failureLines, jestCounts, sum, summaryLine } from './test-summary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

const usage = `npm test                 the gate: what runs on every change
npm run test:all         the gate, and all files named *.slow.test.ts
npm run test:long        the fault tests in their long form: soaks, walks, crash sweeps

Each takes these arguments after a "--":

  PART            run only these: lint, crds, typecheck, unit, e2e, faults
  AREA            run only test files with this in their path below test/: stacks, e2e/provision, walks
  --help          print this text

  KINDRED_SEED=N  repeats the random choices of a fault test; a failing test prints its seed

Failed tests are listed last, just before "N passed, N failed".
`;

/** The checks, which run in parallel. */
const checks = {
  /** The linter checks types too, with the native compiler. */
  lint: async () =>
    sum(
      await Promise.all([
        check('lint', 'node_modules/oxlint/bin/oxlint'),
        check('format', 'node_modules/oxfmt/bin/oxfmt', '--check'),
        check('lockfile', 'scripts/complete-lockfile.mjs', '--check'),
        check('unused', 'node_modules/knip/bin/knip.js', '--production'),
      ]),
    ),
  crds: () => check('crds', 'node_modules/tsx/dist/cli.mjs', 'scripts/check-crds.ts'),
  /**
   * The compiler that builds the library, and with which Pulumi runs programs. It takes twice as long as all
   * other checks, and finds the same.
   */
  typecheck: () => check('typecheck', 'node_modules/typescript/bin/tsc', '--noEmit'),
};

/**
 * The parts that Jest runs. A file below test/e2e or test/faults belongs to that part; any other is a unit
 * test.
 */
const testParts = ['unit', 'e2e', 'faults'];
const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => `test/${file}`);
const partOf = (file) => testParts.find((part) => file.startsWith(`test/${part}/`)) ?? 'unit';

const args = process.argv.slice(2);
if (args.includes('--help')) {
  process.stdout.write(usage);
  process.exit(0);
}
const long = args.includes('--long');
const slow = long || args.includes('--all');
const parts = args.filter((arg) => arg in checks || testParts.includes(arg));
const areas = args.filter((arg) => !parts.includes(arg) && arg !== '--all' && arg !== '--long');
for (const area of areas) {
  if (!area.startsWith('-') && chosenFiles([area]).length > 0) continue;
  process.stderr.write(`npm test: "${area}" is neither a part nor in the path of a test that would run\n\n${usage}`);
  process.exit(2);
}

const reports = mkdtempSync(join(tmpdir(), 'kindred-test-'));
const children = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A terminal sends the signal to the children too. This process exits after them.
  process.on(signal, () => {
    process.exitCode = 130;
    for (const child of children) child.kill(signal);
  });
}

let total;
try {
  total = sum([await runChecks(), await runTests()]);
} finally {
  rmSync(reports, { recursive: true, force: true });
}
if (process.exitCode === 130) console.log('\nstopped before the end');
else if (total.failed > 0) process.exitCode = 1;
console.log(`\n${[...failureLines(total), summaryLine(total)].join('\n')}`);

async function runChecks() {
  const inGate = Object.keys(checks).filter((name) => name !== 'typecheck' || slow);
  const chosen = args.every((arg) => arg === '--all')
    ? inGate
    : Object.keys(checks).filter((name) => parts.includes(name));
  if (chosen.length === 0) return sum([]);
  return timed(chosen.join(', '), async () => sum(await Promise.all(chosen.map((name) => checks[name]()))));
}

async function runTests() {
  const chosen = chosenFiles(areas);
  if (chosen.length === 0 || process.exitCode === 130) return sum([]);
  const projects = testParts.filter((part) => chosen.some((file) => partOf(file) === part));
  const needs = projects.some((part) => part !== 'unit') ? await timed('build, prepare', buildAndPrepare) : sum([]);
  return sum([needs, await timed(projects.join(', '), () => jest(projects, chosen))]);
}

function chosenFiles(within) {
  const chosenParts = long ? ['faults'] : testParts.filter((part) => parts.length === 0 || parts.includes(part));
  return files.filter(
    (file) =>
      chosenParts.includes(partOf(file)) &&
      (slow || !file.endsWith('.slow.test.ts')) &&
      (within.length === 0 || within.some((area) => file.slice('test/'.length).includes(area))),
  );
}

/** End-to-end tests run the bundles. Getting the control plane's programs may take minutes, longer than a test may. */
async function buildAndPrepare() {
  return sum([
    await check('build', 'node_modules/tsx/dist/cli.mjs', 'scripts/build.ts'),
    await check('prepare', 'dist/cli.cjs', 'prepare'),
  ]);
}

/** All projects run at once, so that no core waits for the last file of each. */
async function jest(projects, chosen) {
  const outputFile = join(reports, 'report.json');
  const program = [
    'node_modules/jest/bin/jest.js',
    '--selectProjects',
    ...projects.flatMap((project) => (slow ? [project, `${project}-slow`] : [project])),
    '--ci',
    '--json',
    `--outputFile=${outputFile}`,
    // By default Jest leaves one core idle, which is half of a machine with two.
    `--maxWorkers=${long ? 1 : Math.max(2, availableParallelism())}`,
    ...(areas.length === 0 ? [] : ['--runTestsByPath', ...chosen]),
  ];
  const { code, killed } = await runJest(program, {
    ...{ report: outputFile, cwd: root, env: testEnvironment() },
    // Twice what they take on a busy machine. A soak takes as long as it is told to.
    limitMs: long ? Infinity : (slow ? 180 : 45) * 60_000,
    onChild: track,
  });
  return jestCounts({ code, killed, root, readReport: () => readFileSync(outputFile, 'utf8') });
}

async function timed(name, run) {
  const started = Date.now();
  console.log(`\n== ${name}`);
  const counts = await run();
  console.log(`== ${name}: ${summaryLine(counts)}, ${Math.round((Date.now() - started) / 1000)} s`);
  return counts;
}

/** Runs a check. It is not a test: only a failure is counted. */
async function check(name, ...program) {
  // Compilers and linters make so many short-lived objects that a larger young generation saves a tenth of their time.
  const code = await node('--max-semi-space-size=128', ...program);
  if (code === 0) return sum([]);
  return { passed: 0, failed: 1, skipped: 0, failures: [{ name, error: `${program[0]} ended with ${code}` }] };
}

/**
 * Runs a Node program, unless the run was stopped.
 *
 * @returns its exit code, or the name of the signal that ended it
 */
function node(...program) {
  if (process.exitCode === 130) return Promise.resolve('not started');
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, program, { cwd: root, env: testEnvironment(), stdio: 'inherit' });
    track(child);
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
}

function testEnvironment() {
  return { ...process.env, ...(slow && { KINDRED_NEW_VALUES: '1' }), ...(long && { KINDRED_FAULTS: 'long' }) };
}

/** Signals to this process go to the child too. */
function track(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
}
