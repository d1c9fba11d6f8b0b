import { spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const tested = pathToFileURL(join(__dirname, '..', '..', 'scripts', 'run-cached.mjs')).href;

let folder: string;
let bundle: string;
let cache: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kindred-run-cached-'));
  bundle = join(folder, 'bundle.cjs');
  cache = join(folder, 'bundle.code-cache');
});

afterEach(() => rmSync(folder, { recursive: true }));

function start(source: string): SpawnSyncReturns<string> {
  writeFileSync(bundle, source);
  const program = `import { runCached } from '${tested}'; runCached(...process.argv.slice(1));`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', program, '--', bundle, cache], {
    encoding: 'utf8',
  });
}

/** Runs `source` as the bundle; @returns what it printed */
function run(source: string): string {
  const { status, stdout, stderr } = start(source);
  if (status !== 0) throw new Error(stderr);
  expect(stderr).toBe('');
  return stdout;
}

const source = `
  const { basename } = require('node:path');
  console.log(basename(__filename), basename(__dirname) === basename(require('node:path').dirname(module.filename)));`;

it('runs as Node would, and leaves what it compiled for the next run, which does not write it again', () => {
  expect(run(source)).toBe('bundle.cjs true\n');
  utimesSync(cache, 1, 1);
  // What V8 rejects is written anew.
  expect(run(source)).toBe('bundle.cjs true\n');
  expect(statSync(cache).mtimeMs).toBe(1000);
});

it('is not taken in by another text of the same length, which is all that V8 looks at', () => {
  expect(run(`console.log('old')`)).toBe('old\n');
  expect(run(`console.log('new')`)).toBe('new\n');
  utimesSync(cache, 1, 1);
  expect(run(`console.log('new')`)).toBe('new\n');
  expect(statSync(cache).mtimeMs).toBe(1000);
});

it.each([
  ['empty', () => Buffer.alloc(0)],
  ['cut short', (whole: Buffer) => whole.subarray(0, whole.length / 2)],
  ['of another Node', (whole: Buffer) => Buffer.concat([whole.subarray(0, 32), Buffer.alloc(whole.length - 32, 1)])],
])('replaces a cache that is %s', (_, spoil) => {
  run(source);
  writeFileSync(cache, spoil(readFileSync(cache)));
  utimesSync(cache, 1, 1);
  expect(run(source)).toBe('bundle.cjs true\n');
  expect(statSync(cache).mtimeMs).toBeGreaterThan(1000);
});

it('keeps nothing of a run that fails', () => {
  expect(() => run(`setImmediate(() => { throw new Error('later') })`)).toThrow('later');
  expect(existsSync(cache)).toBe(false);
});

it('runs where no cache can be kept, and says so', () => {
  cache = join(folder, 'missing', 'bundle.code-cache');
  const { status, stdout, stderr } = start(source);
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'bundle.cjs true\n' });
  expect(stderr).toMatch(/^The code cache could not be written, so the next run is no faster: ENOENT/);
});
