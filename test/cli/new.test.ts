import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArguments } from '../../cli/arguments';
import { UsageError } from '../../cli/errors';
import { newProject, projectFiles, type NewArguments } from '../../cli/new';
import { peerDependencies, version } from '../../package.json';
import { temporaryFolder } from '../support/temporary-folder';

const parsed = (...args: readonly string[]) => parseArguments(['new', ...args]) as NewArguments;

test('what is not said', () => {
  expect(parsed('web-shop')).toEqual({
    ...{ command: 'new', name: 'web-shop', group: 'example.com', modules: 'esm', kindred: `^${version}` },
  });
});

test.each([
  [['Website'], /^--name=Website: .*Give one such as website or web-shop/],
  [['1st'], /^--name=1st: /],
  [['a/b'], /^--name=a\/b: /],
  [['..'], /^--name=\.\.: /],
  [['a'.repeat(43)], /at most 42 characters/],
  [['site', '--group=example'], /^--group=example: give a domain that is yours/],
  [['site', '--group=A.b'], /^--group=A\.b: give a domain/],
  [['site', '--modules=umd'], /Allowed choices are esm, commonjs\. See: kindred help new$/],
  [[], /^missing required argument 'name'\. See: kindred help new$/],
])('%j is refused', (args, message) => {
  expect(() => parsed(...args)).toThrow(message);
  expect(() => parsed(...args)).toThrow(UsageError);
});

test.each([
  ['website', 'Website', 'websites'],
  ['web-shop', 'WebShop', 'webshops'],
  ['proxy', 'Proxy', 'proxies'],
  ['relay', 'Relay', 'relays'],
  ['mesh', 'Mesh', 'meshes'],
  ['box', 'Box', 'boxes'],
])('%s has the kind %s, found under %s', (name, kind, plural) => {
  const text = projectFiles(parsed(name, '--group=a.example.com')).get(`${name}.ts`);
  for (const line of [`kind: '${kind}',`, `plural: '${plural}',`, "group: 'a.example.com',"])
    expect(text).toContain(line);
});

test('package.json names the kinds, and the versions of the peers that Kindred takes', () => {
  const manifest = JSON.parse(projectFiles(parsed('site', '--modules=commonjs')).get('package.json') ?? '') as object;
  expect(manifest).toMatchObject({
    ...{ name: 'site', type: 'commonjs', kindred: { kinds: 'site.ts' } },
    // Without names, Node.js looks for tests in JavaScript only, and finds none.
    scripts: { test: 'tsc && tsx --test *.test.ts' },
    dependencies: { kindred: `^${version}`, zod: peerDependencies.zod, cdk8s: peerDependencies.cdk8s },
  });
});

test('a folder that has something in it is left alone; an empty one is taken', async () => {
  const folder = temporaryFolder('kindred-new-');
  const before = process.cwd();
  const said = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  process.chdir(folder);
  try {
    mkdirSync('empty');
    await newProject(parsed('empty'));
    expect(readdirSync('empty').sort()).toEqual([
      ...['.gitignore', 'README.md', 'empty.test.ts', 'empty.ts', 'package.json', 'tsconfig.json'],
    ]);
    writeFileSync(join('empty', 'package.json'), 'mine');
    await expect(newProject(parsed('empty'))).rejects.toThrow(
      /empty is there already, and has files in it\. Give another name, or remove them\.$/,
    );
    writeFileSync('file', '');
    await expect(newProject(parsed('file'))).rejects.toThrow(/file cannot be made: EEXIST/);
  } finally {
    process.chdir(before);
    said.mockRestore();
  }
});
