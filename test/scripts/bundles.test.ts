import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
  execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs'), folder, metafile]);
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
