import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster } from '../../constructs/kinds';

const root = join(__dirname, '..', '..');
let folder: string;
/** The source files whose code is in a bundle. */
let contents: ReadonlyMap<string, readonly string[]>;

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }>
  >;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kindred-bundles-'));
  const metafile = join(folder, 'metafile.json');
  // The command requires packages of its project; operators need nothing.
  mkdirSync(join(folder, 'command'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'command', 'node_modules'));
  const built = join(folder, 'command', 'dist');
  execFileSync(process.execPath, [
    join(root, 'node_modules/tsx/dist/cli.mjs'),
    join(root, 'scripts/build.ts'),
    built,
    metafile,
  ]);
  for (const bundle of ['operator.cjs', 'provisioner.cjs']) copyFileSync(join(built, bundle), join(folder, bundle));
  const { outputs } = JSON.parse(readFileSync(metafile, 'utf8')) as Metafile;
  contents = new Map(
    Object.entries(outputs).map(([file, { inputs }]) => [
      file.replace(/^.*\//, ''),
      Object.keys(inputs).filter((input) => (inputs[input]?.bytesInOutput ?? 0) > 0),
    ]),
  );
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

/** The files of some folders that are in a bundle. */
function filesOf(bundle: string, ...folders: readonly string[]): readonly string[] {
  const files = contents.get(bundle);
  if (files === undefined) throw new Error(`there is no ${bundle}; there are ${[...contents.keys()].join(', ')}`);
  return files.filter((file) => folders.some((name) => file.startsWith(name)));
}

test("the operator's bundle holds nothing of effects, SSH or provisioning", () => {
  const machines = [
    'operator/effects/',
    'provisioner/',
    'provision/',
    'constructs/kinds/cluster',
    'constructs/kinds/kubeconfig',
  ];
  expect(filesOf('operator.cjs', ...machines)).toEqual([]);
  expect(filesOf('operator.cjs', 'operator/manager.ts', 'constructs/kinds/hello-app.ts')).toHaveLength(2);
  for (const name of machines) expect(filesOf('provisioner.cjs', name)).not.toEqual([]);
});

test.each(['operator.cjs', 'provisioner.cjs'])('%s starts with nothing beside it', (bundle) => {
  // No node_modules are above the folder: it imports nothing but the modules of Node.js.
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, bundle), '--help'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('Reconciles the objects of its kinds.');
  expect(stdout.includes('--state-namespace')).toBe(bundle === 'provisioner.cjs');
});

test.each([
  ['operator.cjs', `--kinds=${Cluster.crdName}`, `--kinds: "${Cluster.crdName}" is not known`],
  ['operator.cjs', '--runs=1', "'--runs'"],
  ['provisioner.cjs', '--runs=0', '--runs=0: it must be a whole number'],
])('%s %s is a mistake of the command line', (bundle, argument, message) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, bundle), argument], {
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain(message);
});

describe('cli.cjs', () => {
  const cli = (...args: readonly string[]) =>
    spawnSync(process.execPath, [join(folder, 'command/dist/cli.cjs'), ...args], { encoding: 'utf8' });

  test('completes commands, options and their values', () => {
    const offered = (...line: readonly string[]): readonly string[] => {
      const { status, stdout } = cli('complete', '--', ...line);
      expect(status).toBe(0);
      return stdout.split('\n').map((entry) => entry.split('\t')[0] ?? '');
    };
    expect(offered('d')).toEqual(expect.arrayContaining(['dev', 'docs']));
    expect(offered('d')).not.toContain('build');
    expect(offered('dev', '--po')).toEqual(expect.arrayContaining(['--port', '--pods']));
    expect(offered('dev', '--log-level', '')).toEqual(expect.arrayContaining(['warn', 'debug']));
  });

  test('ends quietly when nobody reads on, and says when nothing can be written', () => {
    const shell = (command: string) => spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
    const { stderr } = shell(`"${process.execPath}" command/dist/cli.cjs complete bash | head -c 1 > /dev/null`);
    expect(stderr).toBe('');
    const full = shell(`"${process.execPath}" command/dist/cli.cjs help > /dev/full`);
    expect(full.status).toBe(1);
    expect(full.stderr).toMatch(/^kindred: stdout cannot be written to: ENOSPC.*\n$/);
  });

  test('prints a completion script that the shell takes', () => {
    const { status, stdout } = cli('complete', 'bash');
    expect(status).toBe(0);
    expect(stdout).toContain('complete -F __kindred_complete kindred');
    expect(spawnSync('bash', ['-n'], { input: stdout, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });

  test.each([
    [['--version'], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
    [['help', 'build'], 0, /^Usage: kindred build \[options\]\n/, /^$/],
    [['begin'], 2, /^$/, /^kindred: "begin" is no command; there are new, dev, .*\n$/],
    [['dev', '--frob'], 2, /^$/, /^kindred: unknown option '--frob'\. See: kindred help dev\n$/],
  ])('%j', (args, status, stdout, stderr) => {
    const ended = cli(...args);
    expect(ended.status).toBe(status);
    expect(ended.stdout).toMatch(stdout);
    expect(ended.stderr).toMatch(stderr);
  });
});
