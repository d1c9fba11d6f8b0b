import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
let copy: string;

/** A copy of what the steps change, so that following them changes nothing here. */
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'kindred-readme-'));
  take(['constructs', 'provision', 'operator', 'stacks', 'scripts', 'cli/bundle', 'crds']);
  take(['package.json', 'package-lock.json', 'tsconfig.json']);
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
});

function take(parts: readonly string[]): void {
  for (const part of parts) cpSync(join(root, part), join(copy, part), { recursive: true });
}

afterAll(() => rmSync(copy, { recursive: true, force: true }));

function node(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args], { cwd: copy, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** The code of the README's first step, without the indentation of the list it stands in. */
function kindOfReadme(): string {
  const section = /## Add your own kind[\s\S]*?```ts\n([\s\S]*?)```/.exec(
    readFileSync(join(root, 'README.md'), 'utf8'),
  );
  if (section?.[1] === undefined) throw new Error('the README has no code under "Add your own kind"');
  return section[1].replace(/^ {3}/gm, '');
}

test("the steps to a kind of one's own lead to its CRD, its permissions and its sample", () => {
  writeFileSync(join(copy, 'constructs/kinds/website.ts'), kindOfReadme());
  const index = join(copy, 'constructs/kinds/kinds.ts');
  const listed = readFileSync(index, 'utf8').replace(
    /(kinds: readonly AnyKind\[\] = Object\.freeze\(\[\n)/,
    '$1  Website,\n',
  );
  writeFileSync(index, `import { Website } from './website';\nexport { Website };\n${listed}`);

  node('node_modules/typescript/bin/tsc', '--noEmit', '--project', '.');
  expect(node('node_modules/tsx/dist/cli.mjs', 'scripts/write-crds.ts')).toContain('websites.sites.example.com.yaml');
  expect(readFileSync(join(copy, 'crds/websites.sites.example.com.yaml'), 'utf8')).toContain(
    'description: The page, as HTML.',
  );

  // Only now: a new kind changes nothing about whether the types of these are right, and to check them takes its time.
  take(['cli', 'image', 'local', 'provisioner']);
  node('scripts/kindred.mjs', 'synth', `--out=${join(copy, 'manifests')}`);
  const manifest = (name: string): string => readFileSync(join(copy, 'manifests', name), 'utf8');
  expect(manifest('2-platform.yaml')).toContain('websites/status');
  expect(manifest('3-samples.yaml')).toContain('page: <h1>Hello</h1>');
}, 300_000);
