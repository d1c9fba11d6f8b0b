import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(60_000);

const root = join(__dirname, '..', '..');
const folder = temporaryFolder('kindred-test-run-jest-');

interface Run {
  readonly code: number | string;
  readonly killed?: string;
}

/** Runs Jest on one test file by the runner of `npm test`. */
function run(name: string, text: string, options: object): Run {
  writeFileSync(join(folder, `${name}.test.js`), text);
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify({ rootDir: folder }));
  const args = [
    join(root, 'node_modules/jest/bin/jest.js'),
    ...['--config', join(folder, 'jest.config.json'), '--json', `--outputFile=${join(folder, `${name}.json`)}`, name],
  ];
  const program = `
    import { runJest } from '${pathToFileURL(join(root, 'scripts', 'run-jest.mjs')).href}';
    const { args, ...options } = JSON.parse(process.argv[1]);
    const { code, killed } = await runJest(args, { ...options, env: process.env });
    process.stderr.write('RESULT ' + JSON.stringify({ code, killed }));`;
  const input = JSON.stringify({ args, report: join(folder, `${name}.json`), cwd: folder, ...options });
  // Not through pipes: a process that is left behind would keep them open.
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program, '--', input], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return JSON.parse(stderr.slice(stderr.lastIndexOf('RESULT ') + 'RESULT '.length)) as Run;
}

const pidFile = (name: string): string => join(folder, `${name}.pid`);
/** Not as a zombie, which has no command line any more. */
function isRunning(name: string): boolean {
  const commandLine = `/proc/${readFileSync(pidFile(name), 'utf8')}/cmdline`;
  return existsSync(commandLine) && readFileSync(commandLine, 'utf8') !== '';
}
const sleeper = (name: string): string =>
  `require('node:fs').writeFileSync(${JSON.stringify(pidFile(name))}, String(process.pid)); setInterval(() => {}, 1000); // ${name}`;

const onLinux = process.platform === 'linux' ? test : test.skip;

test('a run that ends has the exit code of Jest', () => {
  expect(run('fails', `test('fails', () => { throw new Error('no') });`, {})).toEqual({ code: 1 });
});

onLinux('a process that a test left behind does not keep the run: it is named and killed', () => {
  const { killed } = run(
    'leaves',
    `const { spawn } = require('node:child_process');
     test('leaves a process', async () => {
       const child = spawn(process.execPath, ['-e', ${JSON.stringify(sleeper('leaves'))}], { stdio: 'inherit' });
       while (!require('node:fs').existsSync(${JSON.stringify(pidFile('leaves'))})) await new Promise((next) => setTimeout(next, 20));
     });`,
    { graceMs: 1500 },
  );
  expect(killed).toMatch(/^Jest did not exit within 2 s after its report; still running: \d+ .*\/\/ leaves/);
  expect(isRunning('leaves')).toBe(false);
});

onLinux(
  'a test that hangs where no timeout of Jest reaches it ends at the limit, and what it waits for is named',
  () => {
    const { killed } = run(
      'hangs',
      `test('hangs', () => {
       require('node:child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(sleeper('hangs'))}]);
     });`,
      { limitMs: 6000 },
    );
    expect(killed).toMatch(/^the tests did not end within 0 minutes; still running: \d+ .*\/\/ hangs/);
    expect(isRunning('hangs')).toBe(false);
  },
);
