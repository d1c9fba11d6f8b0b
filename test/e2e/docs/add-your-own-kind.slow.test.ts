import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubectl, useControlPlane } from '../../../testing/control-plane';
import { name, version } from '../../../package.json';
import { Consumer } from '../package/consumer';
import { codeBlocks, commandsIn, filesIn, wordsOf } from '../../support/code-blocks';

jest.setTimeout(240_000);

const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'add-your-own-kind.md'), 'utf8');
const blocks = codeBlocks(page);
const installing = ['npm pack ../kindred', `npm install ./${name}-${version}.tgz`];
const plane = useControlPlane({ components: 'full' });
const operators: ChildProcess[] = [];
let project: Consumer;

beforeAll(async () => {
  project = await Consumer.of(filesIn(blocks));
}, 180_000);

afterAll(async () => {
  for (const operator of operators) operator.kill('SIGKILL');
  await Promise.all(operators.map(ended));
  project.remove();
});

/** Runs one command as the page says. @returns what it printed; a failing one rejects */
async function run(line: string): Promise<string> {
  const [command, ...args] = wordsOf(line);
  if (installing.includes(line)) return ''; // done, with the package of this working tree
  if (command === 'npx' && args[0] === 'tsc') return project.tsc(...args.slice(1));
  if (command === 'node' && args.at(-1) === '&') return start(args.slice(0, -1));
  if (command === 'node') return project.node(...args);
  if (command === 'kubectl') return ask(args);
  throw new Error(`the test does not know how to run: ${line}`);
}

function start(args: readonly string[]): string {
  const env = { ...process.env, KUBECONFIG: plane.adminKubeconfig };
  operators.push(spawn(process.execPath, args, { cwd: project.folder, env, stdio: ['ignore', 'ignore', 'inherit'] }));
  return '';
}

async function ask(args: readonly string[]): Promise<string> {
  const inFolder = args.map((arg, i) => (args[i - 1] === '-f' ? join(project.folder, arg) : arg));
  const { code, stdout, stderr } = await kubectl(plane, inFolder);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((done) => child.once('exit', done));
}

test('every command of the page does what it says', async () => {
  const printed = new Map<string, string>();
  for (const { line, fails } of commandsIn(blocks)) {
    if (fails) await expect(run(line)).rejects.toThrow('spec.page');
    else printed.set(line, await run(line));
  }
  expect(printed.get('kubectl get site')).toMatch(/^NAME +PODS +READY +AGE\nhello +1 +True /);
  expect(printed.get('node operator.js --help')).toContain('(default: all of websites.sites.example.com)');
  expect(printed.get('node versions.js')).toBe('nothing is lost\n');
});

test('its operator ends in good order', async () => {
  const [operator] = operators;
  operator?.kill('SIGTERM');
  await ended(operator as ChildProcess);
  expect(operator?.exitCode).toBe(0);
});
