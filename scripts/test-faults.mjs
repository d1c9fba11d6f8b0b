// `npm run test:faults`: the long form of the fault tests; the short one is part of `npm test`.
// `npm run test:faults -- walks soak`: only these parts, each a folder of test/faults.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jestCounts, summaryLine } from './test-summary.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'test', 'faults');
const parts = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && hasTests(join(folder, entry.name)))
  .map(({ name }) => name);

const usage = `npm run test:faults [-- [--short] PART...]

Runs the fault tests in their long form, one file at a time, on the real control plane.

  PART            only these: ${parts.join(', ')} (default: all)
  --short         the form that npm test runs
  --help          this text

  KINDRED_SEED=N  repeats a run: what fails tells its seed (default: a new one)
`;

const args = process.argv.slice(2);
if (args.includes('--help')) {
  process.stdout.write(usage);
  process.exit(0);
}
const chosen = args.filter((arg) => arg !== '--short');
const unknown = chosen.filter((name) => !parts.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`test:faults: there is no part "${unknown.join('", "')}"\n\n${usage}`);
  process.exit(2);
}

let child;
let stopped = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A terminal sends the signal to the child too; it ends in its own time, and we after it.
  process.on(signal, () => {
    stopped = true;
    child?.kill(signal);
  });
}

await must('build', 'scripts/build.mjs');
await must('prepare', 'dist/cli.cjs', 'prepare');
const reports = mkdtempSync(join(tmpdir(), 'kindred-faults-'));
try {
  const report = join(reports, 'report.json');
  const code = await node(
    'node_modules/jest/bin/jest.js',
    '--selectProjects=faults',
    '--ci',
    '--runInBand',
    '--json',
    `--outputFile=${report}`,
    ...(chosen.length === 0 ? [] : ['--testPathPatterns', `/faults/(${chosen.join('|')})/`]),
  );
  const counts = jestCounts(code, () => readFileSync(report, 'utf8'));
  console.log(stopped ? '\nstopped before the end' : `\n${summaryLine(counts)}`);
  process.exitCode = stopped ? 130 : counts.failed > 0 ? 1 : 0;
} finally {
  rmSync(reports, { recursive: true, force: true });
}

function hasTests(path) {
  return readdirSync(path, { recursive: true }).some((name) => name.endsWith('.test.ts'));
}

/** Runs what the tests need first. */
async function must(what, ...program) {
  const code = await node(...program);
  if (code === 0) return;
  console.error(`test:faults: ${what} failed (${code})`);
  process.exit(stopped ? 130 : 1);
}

/** Runs a program of Node; @returns its exit code, or a signal's name */
function node(...program) {
  const env = { ...process.env, KINDRED_FAULTS: args.includes('--short') ? 'short' : 'long' };
  return new Promise((resolve, reject) => {
    child = spawn(process.execPath, program, { cwd: root, env, stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
}
