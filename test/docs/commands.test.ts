import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../../cli/arguments';
import { name, version } from '../../package.json';

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
  expect(installs.filter((line) => !line.endsWith(` ./${name}-${version}.tgz`))).toEqual([]);
});

test.each(pages)('%s calls the command as it can be called, since nothing puts it on PATH', (page) => {
  const calls = new RegExp(String.raw`(^|\`)kindred (${commands.join('|')})\b`, 'm');
  expect(text(page)).not.toMatch(calls);
});

test.each(pages)("%s deletes no CRD by a label that other kinds' CRDs bear too", (page) => {
  expect(text(page)).not.toMatch(/^kubectl delete crd .*(-l|--selector)/m);
});
