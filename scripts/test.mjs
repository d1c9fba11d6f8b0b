// `npm test`: type check, lint, unit tests, end-to-end tests. The last line of the output is `N passed, N failed`.
// `npm test -- unit lint`: only these parts.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jestCounts, summaryLine, sum } from './test-summary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

const workers = availableParallelism() < 4 ? 1 : 2;

/** Each part of the test, in the order in which they run: the quick ones first. */
const parts = {
  typecheck: () => check('node_modules/typescript/bin/tsc', '--noEmit'),
  lint: async () => sum([await check('node_modules/eslint/bin/eslint.js', '.'), await format(), await lockfile()]),
  crds: () => check('node_modules/tsx/dist/cli.mjs', 'scripts/check-crds.ts'),
  // All cores: Jest's default leaves one of them idle, which with two is half.
  unit: () => jest('unit', '100%'),
  // Every file starts a control plane of its own, which keeps a core busy.
  e2e: async () => sum([await build(), await prepare(), await jest('e2e', workers)]),
  // The short form; `npm run test:faults` is the long one.
  faults: async () => sum([await build(), await prepare(), await jest('faults', workers)]),
};

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in parts));
if (unknown.length > 0) {
  console.error(`npm test: there is no part "${unknown.join('", "')}"; there are ${Object.keys(parts).join(', ')}`);
  process.exit(2);
}

const reports = mkdtempSync(join(tmpdir(), 'kindred-test-'));
let child;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A terminal sends the signal to the child too; it ends in its own time, and we after it.
  process.on(signal, () => {
    process.exitCode = 130;
    child?.kill(signal);
  });
}

const counts = [];
try {
  for (const [name, run] of Object.entries(parts)) {
    if ((chosen.length > 0 && !chosen.includes(name)) || process.exitCode === 130) continue;
    const started = Date.now();
    console.log(`\n== ${name}`);
    const count = await run();
    counts.push(count);
    console.log(`== ${name}: ${summaryLine(count)}, ${Math.round((Date.now() - started) / 1000)} s`);
  }
} finally {
  rmSync(reports, { recursive: true, force: true });
}
const total = sum(counts);
if (process.exitCode === 130) console.log('\nstopped before the end');
else if (total.failed > 0) process.exitCode = 1;
console.log(`\n${summaryLine(total)}`);

/** Runs a program of Node, unless somebody has said to stop; @returns its exit code, or a signal's name */
function node(...args) {
  if (process.exitCode === 130) return Promise.resolve('not started');
  return new Promise((resolve, reject) => {
    child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
}

/** A check passes without being counted, since it is no test; it fails as one. */
async function check(...args) {
  const code = await node(...args);
  if (code !== 0) console.log(`${args.join(' ')} failed (${code})`);
  return { passed: 0, failed: code === 0 ? 0 : 1 };
}

function format() {
  return check('node_modules/prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.');
}

function lockfile() {
  return check('scripts/complete-lockfile.mjs', '--check');
}

function build() {
  return check('scripts/build.mjs');
}

/** The parts of the control plane: the first time this takes minutes, which no test should have to wait for. */
function prepare() {
  return check('dist/cli.cjs', 'prepare');
}

async function jest(project, maxWorkers) {
  const outputFile = join(reports, `${project}.json`);
  const code = await node(
    'node_modules/jest/bin/jest.js',
    `--selectProjects=${project}`,
    '--ci',
    '--json',
    `--outputFile=${outputFile}`,
    `--maxWorkers=${maxWorkers}`,
  );
  return jestCounts(code, () => readFileSync(outputFile, 'utf8'));
}
