import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTool } from '../../local/assets/process';
import { codeIn } from '../../bench/results';

const { signal } = new AbortController();
const { PATH } = process.env;
let folder: string;

beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'code-'))));

afterEach(async () => {
  process.env['PATH'] = PATH;
  await rm(folder, { recursive: true });
});

/** Runs git in the folder; @returns what it printed */
async function git(...args: readonly string[]): Promise<string> {
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'commit.gpgSign=false'];
  const result = await runTool('git', [...who, ...args], { cwd: folder, env: process.env });
  expect(result).toMatchObject({ code: 0 });
  return result?.stdout.trim() ?? '';
}

test('the commit, and whether something is not in it', async () => {
  await git('init', '--quiet');
  expect(await codeIn(folder, signal)).toEqual({ commit: '-', dirty: false });
  await writeFile(join(folder, 'a.ts'), '1');
  await git('add', 'a.ts');
  await git('commit', '--quiet', '--message=first');
  const commit = await git('rev-parse', '--short', 'HEAD');
  expect(await codeIn(folder, signal)).toEqual({ commit, dirty: false });
  await writeFile(join(folder, 'a.ts'), '2');
  expect(await codeIn(folder, signal)).toEqual({ commit, dirty: true });
  await git('checkout', '--quiet', 'a.ts');
  await writeFile(join(folder, 'b.ts'), 'new');
  expect(await codeIn(folder, signal)).toEqual({ commit, dirty: true });
});

test('a folder that is in no repository', async () => {
  expect(await codeIn(folder, signal)).toEqual({ commit: '-', dirty: false });
});

test('a machine without git', async () => {
  process.env['PATH'] = folder; // where nothing is
  expect(await codeIn(folder, signal)).toEqual({ commit: '-', dirty: false });
});
