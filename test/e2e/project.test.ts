import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { installKindred, linkPackages, root } from '../support/project-folder';
import { temporaryFolder } from '../support/temporary-folder';

const cli = join(root, 'dist', 'cli.cjs');
const parent = temporaryFolder('kindred-project-');

const website = `import { k8s } from 'cdk8s-plus-27';
import { cel, defineKind, owned, withRule } from 'kindred/constructs';
import { z } from 'zod';
import { labelsOf } from './labels';

const spec = z.object({
  page: z.string().describe('The page.'),
  size: withRule(z.int32().describe('A number.'), cel('self > 0', 'must be positive'), (value) => value > 0).optional(),
});
export const Website = defineKind({
  group: 'sites.example.com', version: 'v1', kind: 'Website', plural: 'websites', scope: 'Namespaced',
  description: 'One page.', spec, owns: [owned.ConfigMap], samples: [{ name: 'hello', spec: { page: 'Hi' } }],
  children(scope, { metadata: { name }, spec: { page } }) {
    if (page === 'broken') throw new Error('it is broken');
    new k8s.KubeConfigMap(scope, 'page', { metadata: { name, labels: labelsOf(name) }, data: { page } });
  },
});
`;
const labels = 'export const labelsOf = (app: string): Record<string, string> => ({ app });\n';
const wellFormed = { 'package.json': { kindred: { kinds: 'website.ts' } }, 'website.ts': website, 'labels.ts': labels };

/** A folder with these files, in which the package is installed. */
function project(files: Readonly<Record<string, string | object>> = wellFormed, installed = true): string {
  const folder = mkdtempSync(join(parent, 'my-site-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  if (installed) installKindred(folder);
  else linkPackages(folder);
  return folder;
}

function kindred(cwd: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
}

const object = (spec: object, name = 'hello'): string =>
  JSON.stringify({ apiVersion: 'sites.example.com/v1', kind: 'Website', metadata: { name }, spec });

const one = (files: Readonly<Record<string, string | object>>) => ({ ...wellFormed, ...files });
const kinds = (value: unknown) => ({ 'package.json': { name: 'my-site', kindred: value } });

describe('the command works on the project in which it stands', () => {
  test('render, from a folder below', () => {
    const folder = project(one({ 'objects/site.json': object({ page: 'Hi', size: 1 }) }));
    const { status, stdout, stderr } = kindred(join(folder, 'objects'), 'render', 'site.json', '-o', 'json');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { items } = JSON.parse(stdout) as { readonly items: readonly object[] };
    expect(items).toEqual([
      {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { page: 'Hi' } },
        metadata: { name: 'hello', namespace: 'default', labels: { app: 'hello' } },
      },
    ]);
  });

  test.each([
    [{ page: 'Hi', size: 0 }, /site\.json: .*spec\.size: must be positive/s],
    [{}, /site\.json: .*spec\.page: is required/s],
    [{ page: 'broken' }, /site\.json: .*it is broken/s],
  ])('what it says of %j is an error of the object', (spec, message) => {
    const { status, stderr } = kindred(project(one({ 'site.json': object(spec) })), 'render', 'site.json');
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(message) as string });
    expect(stderr).not.toContain('should not happen');
  });

  test('docs: of its kinds, and of no others', () => {
    const folder = project();
    const docs = (...flags: readonly string[]) =>
      kindred(parent, `--project=${folder}`, 'docs', `--out=${folder}/pages`, '--output=json', ...flags);
    const files = ['README.md', 'websites.sites.example.com.md'].map((name) => join(folder, 'pages', name));
    const before = docs('--check');
    expect({ ...before, stdout: JSON.parse(before.stdout) as unknown }).toMatchObject({
      ...{ status: 1, stdout: { outOfDate: files }, stderr: expect.stringContaining('out of date') as string },
    });
    expect(JSON.parse(docs().stdout)).toEqual({ written: files, removed: [] });
    const gone = join(folder, 'pages/pages.sites.example.com.md');
    copyFileSync(files[1] ?? '', gone);
    expect(JSON.parse(docs().stdout)).toEqual({ written: [], removed: [gone] });
    expect(readdirSync(join(folder, 'pages')).sort()).toEqual(['README.md', 'websites.sites.example.com.md']);
    // The rule has come from the project's copy of the library to the command's, which must be the same one.
    expect(readFileSync(join(folder, 'pages/websites.sites.example.com.md'), 'utf8')).toContain('must be positive');
  });

  test('synth: its kinds and its operator, named after the package', () => {
    const folder = project(
      one({ 'package.json': { name: '@team/My_Site', version: '2.0.0', kindred: { kinds: 'website.ts' } } }),
    );
    const { status, stdout, stderr } = kindred(folder, 'synth');
    expect({ status, lines: stdout.split('\n').length, stderr }).toEqual({
      ...{ status: 0, lines: 5 },
      stderr: expect.stringMatching(
        /^kindred: no registry has my-site-operator:2\.0\.0, .* with npx kindred build --push=REF and name it with --image=REF, /,
      ) as string,
    });
    const written = (name: string): string => readFileSync(join(folder, 'dist/manifests', name), 'utf8');
    expect(written('1-crds.yaml').match(/^kind: CustomResourceDefinition$/gm)).toHaveLength(1);
    expect(written('1-crds.yaml')).toContain('rule: self > 0');
    expect(written('2-platform.yaml')).toMatch(/^ {2}name: kindred-my-site\n {2}namespace: my-site-system$/m);
    expect(written('3-samples.yaml')).toContain('namespace: my-site-samples');
  });

  test('run: an operator of its kinds', () => {
    const { status, stdout, stderr } = kindred(project(), 'run', '--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('(default: all of websites.sites.example.com)');
  });

  test('an ES module with its kinds in several files, and an operator with a program of its own', () => {
    const shop = website
      .replaceAll('Website', 'Shop')
      .replaceAll('websites', 'shops')
      .replace('./labels', './labels.js');
    const folder = project({
      'package.json': {
        type: 'module',
        kindred: {
          operators: { sites: { kinds: ['website.ts', 'shop.ts'] }, own: { kinds: 'own.ts', program: 'run.ts' } },
        },
      },
      ...{ 'website.ts': website, 'shop.ts': shop, 'labels.ts': labels },
      'own.ts': website.replaceAll('Website', 'Own').replaceAll('websites', 'owns'),
      'run.ts':
        "import { main } from 'kindred/operator';\nimport { Own } from './own';\nmain({ name: 'mine', kinds: [Own] });\n",
    });
    expect(kindred(folder, 'run', '--help').stdout).toContain(
      '(default: all of websites.sites.example.com, shops.sites.example.com)',
    );
    expect(kindred(folder, 'run', '--kinds=owns.sites.example.com', '--nonsense')).toEqual({
      ...{ status: 2, stdout: '' },
      stderr: expect.stringMatching(/^mine: /) as string,
    });
  });
});

test.each<readonly [string, Readonly<Record<string, string | object>>, RegExp]>([
  ['package.json is no JSON', one({ 'package.json': '{' }), /package\.json cannot be read: .*\. Correct it\.$/],
  [
    'package.json is no object',
    one({ 'package.json': '[]' }),
    /package\.json cannot be read: .*object.*\. Correct it\.$/,
  ],
  [
    'no kinds are named',
    one({ 'package.json': {} }),
    /does not say where the kinds are\. Add "kindred": \{ "kinds": "FILE\.ts" \}/,
  ],
  ['a wrong key', one(kinds({ kind: 'website.ts' })), /package\.json: .*kind.*It must be \{ "kinds": "FILE\.ts" \}/],
  ['no file', one(kinds({ kinds: '' })), /kindred\.kinds: .*It must be \{/],
  ['no operator', one(kinds({ operators: {} })), /kindred\.operators is empty/],
  ['a bad name', one(kinds({ operators: { A_B: { kinds: 'website.ts' } } })), /kindred\.operators\.A_B: .*It must be/],
  [
    'a file that is not there',
    one(kinds({ kinds: 'web.ts' })),
    /names web\.ts under "kindred", and there is no \S+web\.ts\.$/,
  ],
  [
    'a source that does not compile',
    one({ 'labels.ts': '\nexport const labelsOf = ;' }),
    /^kindred: labels\.ts:2:25: Unexpected ";"$/,
  ],
  [
    'an import of nothing',
    one({ 'labels.ts': "import './nothing';" }),
    /^kindred: labels\.ts:1:8: Could not resolve "\.\/nothing"$/,
  ],
  [
    'a package that is not there',
    one({ 'labels.ts': "import '@a/b/c';" }),
    /there is no package "@a\/b\/c"\. Run: npm install @a\/b$/,
  ],
  [
    'a file that throws',
    one({ 'labels.ts': "\n\n  throw new TypeError('no luck');" }),
    /^kindred: labels\.ts:3:9: no luck$/,
  ],
  [
    'a definition that Kubernetes cannot take',
    one({ 'website.ts': website.replace("describe('The page.')", 'max(3)') }),
    /^kindred: website\.ts:10:\d+: kind Website cannot be defined:\n.*spec\.page/,
  ],
  [
    'a file that would be read at run time',
    one({ 'labels.ts': 'export const labelsOf = () => ({ from: import.meta.url });' }),
    /^kindred: labels\.ts:1:\d+: import\.meta is not there\. Import the file that it leads to instead\.$/,
  ],
  [
    'no kind',
    one({ 'website.ts': 'export const Website = 1;' }),
    /^kindred: website\.ts exports no kind\. Export what defineKind returns/,
  ],
  [
    'two kinds of one name',
    one({ 'website.ts': `${website}export const Again = defineKind({ ...Website, plural: 'sites' });` }),
    /website\.ts \(Website\): the API server knows a kind as Website\.sites\.example\.com already, from website\.ts \(Again\)/,
  ],
  [
    'effects that nothing executes',
    one({
      'website.ts': website.replace(
        'owns:',
        "finalizer: { name: 'a.b/c', propagation: 'Background' }, effects: [{ name: 'make', phase: 'apply', plan: 'site.make', input: () => ({}), condition: 'Made', timeoutSeconds: 1, maxAttempts: () => 1 }], conditionTypes: [{ type: 'Made', description: 'Made.' }], owns:",
      ),
    }),
    /Website acts outside the Kubernetes API, and nothing says how.*"program": "operator\.ts"$/,
  ],
])('%s: one error that says where, and what to do', (_, files, message) => {
  const { status, stdout, stderr } = kindred(project(files), 'run', '--help');
  expect({ status, stdout, stderr: stderr.trimEnd() }).toEqual({
    ...{ status: 1, stdout: '' },
    stderr: expect.stringMatching(message) as string,
  });
});

test('a program of its own has the whole of the packages that it imports itself', () => {
  const program = `import { main } from 'kindred/operator';
import { request } from 'undici';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { Website } from './website';
const config = new KubeConfig();
config.loadFromOptions({ clusters: [{ name: 'a', server: 'https://127.0.0.1:1' }], users: [{ name: 'a' }], contexts: [{ name: 'a', cluster: 'a', user: 'a' }], currentContext: 'a' });
process.stdout.write([typeof request, typeof config.makeApiClient(CoreV1Api).listNode].join());
main({ kinds: [Website] });
`;
  const folder = project(one({ 'run.ts': program, ...kinds({ kinds: 'website.ts', program: 'run.ts' }) }));
  for (const name of ['undici', '@kubernetes'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  expect(kindred(folder, 'run', '--help')).toMatchObject({
    ...{ status: 0, stderr: '' },
    stdout: expect.stringMatching(/^function,function/) as string,
  });
});

test('a package.json on the way, and a link to the project, are no obstacle', () => {
  const folder = project(
    one({ 'objects/package.json': '{ "type": "module" }', 'objects/site.json': object({ page: 'Hi' }) }),
  );
  expect(kindred(join(folder, 'objects'), 'render', 'site.json')).toMatchObject({ status: 0, stderr: '' });
  symlinkSync(root, join(folder, 'checkout'));
  expect(kindred(folder, `--project=${folder}/checkout`, 'docs', '--check', `--out=${root}/docs/kinds`)).toMatchObject({
    status: 0,
  });
});

test("the README's kind is one", () => {
  const [, code = ''] = /^```ts\n(import [^]*?)^```$/m.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  const folder = project({ 'package.json': { name: 'website', kindred: { kinds: 'website.ts' } }, 'website.ts': code });
  expect(kindred(folder, 'synth', '--image=x:1')).toMatchObject({ status: 0, stderr: '' });
  expect(kindred(folder, 'render', 'dist/manifests/3-samples.yaml', '-o', 'tree').stdout).toBe(
    'Website website-samples/hello\n└─ Deployment hello\n',
  );
});

test('a new project is one', () => {
  const folder = mkdtempSync(join(parent, 'new-'));
  expect(kindred(folder, 'new', 'web-shop')).toMatchObject({ status: 0, stderr: '' });
  const made = join(folder, 'web-shop');
  installKindred(made);
  const { stdout, ...ended } = kindred(made, 'synth', '--image=x:1', '--output=json');
  expect(ended).toEqual({ status: 0, stderr: '' });
  const names = ['1-crds', '2-platform', '3-samples', 'argo-cd'];
  expect(JSON.parse(stdout)).toEqual({ files: names.map((name) => `dist/manifests/${name}.yaml`) });
  expect(kindred(made, 'render', 'dist/manifests/3-samples.yaml', '-o', 'tree')).toEqual({
    ...{ status: 0, stderr: '' },
    stdout: 'WebShop web-shop-samples/hello\n└─ Deployment hello\n',
  });
});

describe('where it stands', () => {
  test('outside of a project', () => {
    const { status, stderr } = kindred('/', 'docs');
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr:
        'kindred: there is no package.json in /, nor in a folder above it. Run this in the folder of your project, or name that: kindred --project=DIR\n',
    });
  });

  test('in a project that has no Kindred, or another one', () => {
    expect(kindred(project(wellFormed, false), 'docs').stderr).toMatch(
      /^kindred: kindred is not installed in \S+\. Run there: npm install kindred\n$/,
    );
    const other = project(wellFormed, false);
    mkdirSync(join(other, 'node_modules/kindred'));
    writeFileSync(join(other, 'node_modules/kindred/package.json'), '{}');
    expect(kindred(other, 'docs').stderr).toMatch(
      /has kindred in \S+, and this is the one in \S+\. Run the project's own: npx kindred\n$/,
    );
  });
});

test('prepare: the parts that are there, for a script', () => {
  const { status, stdout } = kindred(parent, 'prepare', '-o', 'json');
  expect(status).toBe(0);
  const { folder, parts } = JSON.parse(stdout) as { readonly folder: string; readonly parts: Record<string, string> };
  expect(parts['etcd']?.startsWith(folder)).toBe(process.env['KUBEBUILDER_ASSETS'] === undefined);
  expect(existsSync(parts['kube-apiserver'] ?? '')).toBe(true);
});
