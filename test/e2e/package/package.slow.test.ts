import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { Consumer } from './consumer';

jest.setTimeout(180_000);

let app: Consumer;

beforeAll(async () => {
  app = await Consumer.of('examples/cdk8s-app');
});

afterAll(() => app.remove());

/** What the app has synthesized, by file; it is removed. */
function manifests(): Readonly<Record<string, string>> {
  const folder = join(app.folder, 'dist');
  const files = readdirSync(folder).sort();
  const texts = files.map((file) => [file, readFileSync(join(folder, file), 'utf8')] as const);
  rmSync(folder, { recursive: true });
  return Object.fromEntries(texts);
}

const CACHES = 'caches.shop.example.com';

function parsed(text: string): readonly KubeObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}

test('the package holds the library, the command, what these read, and nothing else', () => {
  const tops = new Set(
    app.files.map((file) => file.replace(/^(dist\/library\/[^/]+|dist\/[^/]+|local\/parts|[^/]+).*$/, '$1')),
  );
  const texts = ['LICENSE', 'package.json', 'README.md', 'CHANGELOG.md', 'crds'];
  // An operator of one's own is bundled from the sources; the parts of the local control plane are built from Go modules.
  const sources = ['constructs', 'operator', 'provision', 'local/parts'];
  const library = ['constructs', 'provision', 'operator', 'stacks', 'local', 'testing'].map(
    (layer) => `dist/library/${layer}`,
  );
  const wanted = [...texts, ...sources, ...library, 'dist/cli.cjs', 'dist/cli.cjs.LEGAL.txt'];
  expect([...tops].sort()).toEqual(wanted.sort());
  const allowed = [
    /^dist\/library\/.*\.(js|d\.ts)$/,
    /^dist\/cli\.cjs/,
    /^crds\/[^/]+\.yaml$/,
    /^(constructs|operator|provision)\/.*\.ts$/,
    /^local\/parts\/[a-z]+\/[a-z]+\.(mod|sum|go|sh)$/,
  ];
  const inside = app.files.filter((file) => file.includes('/'));
  expect(inside.filter((file) => !allowed.some((path) => path.test(file)))).toEqual([]);
  expect(inside).toEqual(expect.arrayContaining(['crds/helloapps.apps.anupam.com.yaml', 'dist/cli.cjs']));
});

test('a cdk8s app compiles with it, as CommonJS and as an ES module', async () => {
  await app.tsc('-p', 'tsconfig.json');
  await app.tsc('-p', 'tsconfig.esm.json');
});

test('its declarations resolve for bundlers too', async () => {
  await app.tsc('-p', 'tsconfig.json', '--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler');
});

test('the app makes the same manifests in both', async () => {
  await app.node('main.js');
  const common = manifests();
  const [platform, shop] = ['0000-platform.k8s.yaml', '0001-shop.k8s.yaml'].map((file) => parsed(common[file] ?? ''));
  expect({
    platform: platform?.map(nameOf),
    crd: platform?.find(({ metadata }) => metadata.name === CACHES),
    shop,
  }).toMatchSnapshot();
  await app.node('main.mjs');
  expect(manifests()).toEqual(common);
});

test.each(['kindred/constructs', 'kindred/provision', 'kindred/operator'])(
  'every export of %s can be imported by name',
  async (name) => {
    const names = `Object.keys(require('${name}')).sort().join()`;
    const required = await app.node('-p', names);
    const imported = await app.node(
      ...['--input-type=module', '-e'],
      `import * as all from '${name}'; console.log(Object.keys(all).filter((key) => !/^(default|module\\.exports|__esModule)$/.test(key)).sort().join())`,
    );
    expect(imported).toBe(required);
    expect(required.split(',').length).toBeGreaterThan(5);
  },
);

test('a process that requires and imports it has one copy', async () => {
  const same = `import { createRequire } from 'node:module'; import { HelloApp } from 'kindred/constructs';
    console.log(createRequire(import.meta.url)('kindred/constructs').HelloApp === HelloApp)`;
  await expect(app.node('--input-type=module', '-e', same)).resolves.toBe('true\n');
});

test('nothing else of it can be imported', async () => {
  await expect(app.node('-p', "require('kindred/dist/library/constructs/index.js')")).rejects.toThrow(
    'ERR_PACKAGE_PATH_NOT_EXPORTED',
  );
});

test('there is one copy of the peers', () => {
  const own = join(app.folder, 'node_modules', 'kindred', 'node_modules');
  expect(() => readdirSync(own)).toThrow('ENOENT');
});
