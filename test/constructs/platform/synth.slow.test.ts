// The gate keeps what is written, and that it is written by a bundle: synth.test.ts.
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, symlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseArguments } from '../../../cli/arguments';
import { UsageError } from '../../../cli/errors';
import { temporaryFolder } from '../../support/temporary-folder';

/** A repository with a bundle of its own: synth.test.ts, which may run at the same time, counts on nobody else making the one of this repository. */
const root = temporaryFolder('kindred-synth-');
const original = join(__dirname, '..', '..', '..');

beforeAll(() => {
  cpSync(join(original, 'scripts'), join(root, 'scripts'), { recursive: true });
  const others = readdirSync(original).filter((entry) => !['dist', 'scripts'].includes(entry));
  for (const entry of others) symlinkSync(join(original, entry), join(root, entry));
});

/** What the command line says of arguments that it does not take. */
function refusal(argv: readonly string[]): UsageError {
  try {
    parseArguments(argv);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error(`it takes ${argv.join(' ')}`);
}

describe('npm run synth', () => {
  test.each([
    ...['--nonsense', '--image', '--out=', '--image=a b', '--namespace=A_B', '--samples-namespace=kindred-system'].map(
      (flag) => [flag, refusal(['synth', flag]).message],
    ),
  ])('says of %s what `kindred synth` does, and nothing else', async (flag, message) => {
    const failed = promisify(execFile)(process.execPath, ['scripts/run-synth.mjs', flag], { cwd: root });
    await expect(failed).rejects.toMatchObject({ code: 2, stdout: '', stderr: `kindred: ${message}\n` });
  });

  test('says of a folder that cannot be written to what `kindred synth` does', async () => {
    const out = join(__filename, 'below');
    const failed = promisify(execFile)(process.execPath, ['scripts/run-synth.mjs', `--out=${out}`], { cwd: root });
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^kindred: --out=\S+below cannot be written to: ENOTDIR: .*\n$/) as string,
    });
  });

  test('has the help of `kindred synth`', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['scripts/run-synth.mjs', '--help'], { cwd: root });
    expect(parseArguments(['help', 'synth'])).toEqual({ command: 'print', text: stdout });
  });

  test('says where in the sources it failed when nobody foresaw it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'kindred-synth-test-'));
    try {
      const spoiler = join(folder, 'spoiler.cjs');
      await writeFile(spoiler, "process.stdout.write = () => { throw new TypeError('spoiled'); };");
      const args = ['scripts/run-synth.mjs', `--out=${folder}`];
      // It is run twice, and the second process takes over the environment.
      const env = { ...process.env, NODE_OPTIONS: `--require "${spoiler}"` };
      const failed = promisify(execFile)(process.execPath, args, { cwd: root, env });
      await expect(failed).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/TypeError: spoiled[^]*cli\/synth\.ts:\d+/) as string,
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
