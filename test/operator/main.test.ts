import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { temporaryFolder } from '../support/temporary-folder';

// main() ends the process or sets its exit code, so each test runs a program of its own.

jest.setTimeout(30_000);

const root = join(__dirname, '..', '..');
const folder = temporaryFolder('kindred-main-');

beforeAll(async () => {
  const contents = `export { main } from './operator'; export { Cluster, Foo, HelloApp } from './constructs/kinds';`;
  await build({
    stdin: { contents, resolveDir: root },
    ...{ bundle: true, platform: 'node', format: 'cjs', outfile: join(folder, 'kindred.js') },
  });
}, 60_000);

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `main(...)` with a command line. @param options the source text of its options */
async function run(options: string, ...args: readonly string[]): Promise<Ended> {
  const program = join(folder, 'operator.js');
  writeFileSync(program, `const { main, Cluster, Foo, HelloApp } = require('./kindred.js');\nmain({ ${options} });\n`);
  const argv = [program, ...args];
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, argv, { env: {} });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as Ended;
  }
}

/** A kubeconfig of a server that does not exist. */
function kubeconfig(): string {
  const file = join(folder, 'config');
  const cluster = { server: 'http://127.0.0.1:1' };
  writeFileSync(
    file,
    JSON.stringify({
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  );
  return file;
}

test('prints its options, with the kinds that it was given', async () => {
  const { code, stdout, stderr } = await run('kinds: [Foo, HelloApp]', '--help');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('(default: all of foos.samplecontroller.k8s.io, helloapps.apps.anupam.com)');
});

test('a command line that is not valid is one line and exit code 2', async () => {
  const { code, stdout, stderr } = await run(`name: 'foo-operator', kinds: [Foo]`, '--concurrency=none');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe('foo-operator: --concurrency=none: it must be a whole number from 1 to 1000\n');
});

test('takes the command line from its options instead of the process', async () => {
  const { code, stderr } = await run(`kinds: [Foo], args: ['--kinds=bars.example.com']`, '--help');
  expect(code).toBe(2);
  expect(stderr).toContain('"bars.example.com" is not known; the kinds are foos.samplecontroller.k8s.io');
});

test('a kubeconfig that does not exist is one line and exit code 1', async () => {
  const { code, stderr } = await run('kinds: [Foo]', '--kubeconfig=/nowhere/config');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^operator: .*\/nowhere\/config.*\n$/);
});

test('kinds with effects, started as their Deployment does, without the code for them: says what is missing', async () => {
  const { code, stderr } = await run('kinds: [Cluster]', `--kubeconfig=${kubeconfig()}`, '--drain-seconds=300');
  expect(code).toBe(1);
  expect(stderr).toContain('give it the plans that they name, with `effects: runPlans({ ... })`');
});

test.each([
  ['kinds: []', 'there are no kinds to run'],
  ['kinds: [Foo, Foo]', 'two of the kinds are called foos.samplecontroller.k8s.io'],
])('with %s it does not start', async (options, message) => {
  const { code, stderr } = await run(options, `--kubeconfig=${kubeconfig()}`);
  expect(code).toBe(1);
  expect(stderr).toContain(`operator: ${message}`);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});
