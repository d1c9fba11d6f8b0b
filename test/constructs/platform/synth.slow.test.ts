import { execFile } from 'node:child_process';
import { cpSync, readFileSync, readdirSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { manifests } from '../../../cli/synth';
import { kindredPlatform, testImages } from '../../support/kindred-project';
import { temporaryFolder } from '../../support/temporary-folder';

/** A repository with a dist/ of its own: other tests count on nobody else building that of this repository. */
const root = temporaryFolder('kindred-synth-');
const original = join(__dirname, '..', '..', '..');

beforeAll(() => {
  for (const entry of ['scripts', 'cli', 'constructs', 'operator', 'provisioner', 'package.json'])
    cpSync(join(original, entry), join(root, entry), { recursive: true });
  const others = readdirSync(original).filter((entry) => !readdirSync(root).includes(entry) && entry !== 'dist');
  for (const entry of others) symlinkSync(join(original, entry), join(root, entry));
});

const run = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['scripts/kindred.mjs', 'synth', ...args], { cwd: root });

test('npm run synth writes what the constructs make, with a command that is built when it is older than its sources', async () => {
  const args = [...testImages.map((image) => `--image=${image}`), '--namespace=sys'];
  const out = join(root, 'out');
  await run(`--out=${out}`, ...args);
  for (const [name, text] of manifests(kindredPlatform({ images: testImages, namespace: 'sys' })))
    expect(readFileSync(join(out, name), 'utf8')).toBe(text);
  const built = (): number => statSync(join(root, 'dist/inputs.json')).mtimeMs;
  const first = built();
  await run(`--out=${out}`, ...args);
  expect(built()).toBe(first);
  for (const source of ['cli/synth.ts', 'constructs/kinds/foo.ts']) {
    const before = built();
    utimesSync(join(root, source), new Date(), new Date());
    await run(`--out=${out}`, ...args);
    expect(built()).toBeGreaterThan(before);
  }
});

test('npm run synth fails as the command does', async () => {
  await expect(run('--nonsense')).rejects.toMatchObject({
    ...{ code: 2, stdout: '' },
    stderr: "kindred: unknown option '--nonsense'. See: kindred help synth\n",
  });
  const out = join(root, 'package.json', 'below');
  await expect(run(`--out=${out}`)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^kindred: --out=\S+below cannot be written to: ENOTDIR: .*\n$/) as string,
  });
});
