import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPulumi, runPulumi } from '../../cli/pulumi';

const root = join(__dirname, '..', '..');
const signal = new AbortController().signal;
const before = process.env['PATH'];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kindred-pulumi-cli-'));
  process.env['PATH'] = `${folder}:/usr/bin:/bin`;
});

afterEach(() => {
  process.env['PATH'] = before;
  rmSync(folder, { recursive: true, force: true });
});

function program(name: string, script: string): string {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe('looking for a Pulumi', () => {
  test('is in vain in a project that does not say that its stack installs this', async () => {
    program('pulumi', 'echo v3.248.0');
    expect(await findPulumi({ root, pulumi: false }, signal)).toEqual({
      why: 'package.json does not say that a Pulumi program of the project installs this',
    });
  });

  test.each([
    ['none', undefined, 'there is no pulumi on PATH'],
    ['one that fails', 'exit 1', 'pulumi version failed, or did not answer within 20 s'],
    ['an old one', 'echo v2.25.0', 'pulumi is version 2.25.0; 3 is needed'],
    [
      'one without its plugins, and without a network',
      'case "$1" in version) echo v3.248.0;; *) exit 255;; esac',
      expect.stringMatching(/^its plugin kubernetes v4\.\S+ is not installed and cannot be downloaded$/) as string,
    ],
  ])('%s is no reason to fail, but said', async (_, script, why) => {
    if (script !== undefined) program('pulumi', script);
    else process.env['PATH'] = folder; // a machine's own may be in /usr/bin
    expect(await findPulumi({ root, pulumi: true }, signal)).toEqual({ why });
  });

  test('one that works, with plugins on PATH', async () => {
    program('pulumi', 'echo v3.248.0');
    for (const plugin of ['kubernetes', 'command']) program(`pulumi-resource-${plugin}`, '');
    expect(await findPulumi({ root, pulumi: true }, signal)).toEqual({ command: ['pulumi'], version: '3.248.0' });
  });
});

describe('running it', () => {
  test('a failing exit code is a result; both streams are kept, and stdin is handed on', async () => {
    const file = program('tool', 'cat; echo bad >&2; exit 3');
    expect(await runPulumi([file], [], { cwd: folder, signal, input: 'in\n' })).toMatchObject({
      code: 3,
      stdout: 'in\n',
      text: expect.stringContaining('bad\n') as string,
    });
  });

  test('an abort ends it, and is told once it has ended', async () => {
    const file = program(
      'tool',
      'trap "echo gone > ended; exit 1" INT; echo up > started; while :; do sleep 0.05; done',
    );
    const controller = new AbortController();
    const running = runPulumi([file], [], { cwd: folder, signal: controller.signal, timeoutMs: 20_000 });
    const started = runPulumi(['/bin/sh'], ['-c', 'until [ -f started ]; do sleep 0.05; done'], {
      cwd: folder,
      signal,
    });
    await started;
    controller.abort(new Error('stopped'));
    await expect(running).rejects.toThrow('stopped');
    expect((await runPulumi(['/bin/cat'], ['ended'], { cwd: folder, signal })).stdout).toBe('gone\n');
  });
});
