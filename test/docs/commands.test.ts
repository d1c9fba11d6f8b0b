import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { commandNames, parseArguments } from '../../cli/arguments';
import { DEFAULT_BASE } from '../../cli/build-arguments';
import { engines, kindred, name, version } from '../../package.json';

const root = join(__dirname, '..', '..');
// Not benchmarks.md: it names commands that it measures, and does not tell anyone to run them.
const docs = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md') && file !== 'benchmarks.md');
const examples = readdirSync(join(root, 'examples')).map((example) => `examples/${example}/README.md`);
const pages = ['README.md', 'operator/README.md', ...docs.map((file) => `docs/${file}`), ...examples];

function text(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

test.each(pages)('%s installs the package from its tarball, since no registry has it', (page) => {
  const installs = [...text(page).matchAll(/^npm install.*$/gm)].map(([line]) => line);
  // In a folder that `kindred new` has made, package.json names the tarball.
  const isNamed = text(page).includes(`--kindred=file:../${name}-${version}.tgz`);
  expect(installs.filter((line) => !line.endsWith(` ./${name}-${version}.tgz`) && !isNamed)).toEqual([]);
});

test.each(pages)('%s calls the command as it can be called, since nothing puts it on PATH', (page) => {
  const calls = new RegExp(String.raw`(^|\`)kindred (${commandNames().join('|')})\b`, 'm');
  expect(text(page)).not.toMatch(calls);
});

test.each(pages)("%s deletes no CRD by a label that other kinds' CRDs bear too", (page) => {
  expect(text(page)).not.toMatch(/^kubectl delete crd .*(-l|--selector)/m);
});

/** The arguments of the page's calls of `npm run image`, with values for what readers fill in. */
function imageCalls(page: string): readonly (readonly string[])[] {
  const values: Readonly<Record<string, string>> = {
    '<registry>': 'registry.example.com',
    '<version>': '1.0.0',
    '"$url': '"https://downloads.example.com',
    $sha256: '0'.repeat(64),
  };
  return [...text(page).matchAll(/npm run image(?: -- ([^`\n]*?))?(?= +#|`|\n)/g)].map(([, given = '']) => {
    const filled = Object.entries(values).reduce((left, [from, to]) => left.replaceAll(from, to), given);
    return filled.split(' ').flatMap((word) => (word === '' ? [] : [word.replaceAll('"', '')]));
  });
}

test('npm run image is called with arguments that it takes', () => {
  const calls = pages.flatMap(imageCalls).filter((args) => !args.includes('--help'));
  const parsed = calls.map((args) => parseArguments(['build', ...args]));
  expect(parsed).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ command: 'build', operator: undefined }),
      expect.objectContaining({ command: 'build', operator: 'provisioner' }),
    ]),
  );
  expect(parsed.every(({ command }) => command === 'build')).toBe(true);
  expect(calls.filter((args) => args.some((arg) => arg.startsWith('--binary=rke=https:')))).toHaveLength(1);
});

test('images are built on a Node.js that the package supports', () => {
  const [, least = ''] = /^>=(\d+)/.exec(engines.node) ?? [];
  for (const base of [DEFAULT_BASE, kindred.operators.provisioner.image.base]) {
    const [, node = ''] = /node(?:js|:)(\d+)/.exec(base) ?? [];
    expect(Number(node)).toBeGreaterThanOrEqual(Number(least));
  }
});
