import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { imageMap } from '../../../cli/bundle/image-map';
import { nodeBundle } from '../../../cli/bundle/options';
import { temporaryFolder } from '../../support/temporary-folder';

const kindred = join(__dirname, '../../..');
const root = join(temporaryFolder('kindred-program-stacks-'), 'shop');
const bundle = join(root, 'node_modules/.cache/kindred/operator.cjs');

/** A program that reports what a function of a kind throws, three calls deep, in one of two files. */
const files = {
  'package.json': '{ "name": "shop" }',
  'lib/size.ts': `
    interface Sizes { readonly [name: string]: { readonly replicas: number } }
    export const replicas = (sizes: Sizes, name: string): number =>
      sizes[name]!.replicas;
  `,
  'website.ts': `
    import { replicas } from './lib/size';
    export const children = (): number => replicas({}, 'large');
  `,
  'program.ts': `
    import { callKindFunction } from '${kindred}/constructs/kube/function-error';
    import { reportSourceLines } from '${kindred}/operator/process/program-stacks';
    import { children } from './website';
    reportSourceLines();
    try { callKindFunction('Website a', 'Website.children', children); }
    catch (error) { console.log(JSON.stringify([error.message, error.stack])); }
  `,
};

beforeAll(() => {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(root, file, '..'), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  const minified = { minifyWhitespace: true, lineLimit: 160 };
  buildSync({
    ...nodeBundle,
    ...minified,
    entryPoints: [join(root, 'program.ts')],
    outfile: bundle,
    absWorkingDir: root,
  });
});

const run = (...args: readonly string[]): readonly [message: string, stack: string] =>
  JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as [string, string];

const MESSAGE =
  "Website a: Website.children: TypeError: Cannot read properties of undefined (reading 'replicas') (lib/size.ts:4:20)";

test.each([
  ['without source maps of Node.js', []],
  ['with them', ['--enable-source-maps']],
])('a bundle in its project names lines of the sources, %s', (_, flags) => {
  const [message, stack] = run(...flags, bundle);
  expect(message).toBe(MESSAGE);
  expect(stack).toMatch(/\(lib\/size\.ts:4:20\)\n.*website\.ts:3:\d+\)?\n/);
  expect(stack).not.toContain(root);
});

test('so it does in an image, in which it is alone with its map', () => {
  const image = join(temporaryFolder('kindred-program-image-'), 'operator.cjs');
  writeFileSync(image, readFileSync(bundle));
  const map = imageMap(readFileSync(`${bundle}.map`, 'utf8'), { bundle, root, kindred });
  writeFileSync(`${image}.map`, map);
  expect((JSON.parse(map) as { sources: unknown }).sources).toEqual(
    expect.arrayContaining(['lib/size.ts', 'website.ts', 'node_modules/kindred/constructs/kube/function-error.ts']),
  );
  expect(map).not.toContain(root);
  expect(run(image)[0]).toBe(MESSAGE);
});

test('a bundle without its map reports the error all the same', () => {
  const alone = join(temporaryFolder('kindred-program-alone-'), 'operator.cjs');
  writeFileSync(alone, readFileSync(bundle));
  expect(run(alone)[0]).toMatch(/^Website a: Website\.children: TypeError: Cannot read properties/);
});
