import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeBlocks, filesIn } from '../../support/code-blocks';
import { root } from '../../support/project-folder';
import { Consumer } from './consumer';

jest.setTimeout(300_000);

const files = filesIn(codeBlocks(readFileSync(join(root, 'docs/testing.md'), 'utf8')));

/** The test of docs/testing.md for another runner, whose functions are global. */
const forGlobals = (files['note.test.ts'] ?? '')
  .replace("import { after, before, test } from 'node:test';\n", '')
  .replace('before(async () => {', 'beforeAll(async () => {')
  .replace('});\nafter(', '}, 120_000);\nafterAll(')
  .replace("from './note.js'", "from './note'");

let app: Consumer;
beforeAll(async () => {
  app = await Consumer.of({
    ...files,
    'package.json': JSON.stringify({
      ...{ name: 'notes', version: '1.0.0', private: true },
      jest: { transform: { '\\.ts$': '@swc/jest' }, testTimeout: 60_000 },
      devDependencies: {
        ...{ cdk8s: '^2.70.106', 'cdk8s-plus-27': '^2.9.5', constructs: '^10.8.1', zod: '^4.6.7' },
        ...{ '@swc/core': '^1.16.22', '@swc/jest': '^0.2.39', jest: '^30.5.2', vitest: '^3.2.4' },
        ...{ '@types/jest': '^30.0.0', '@types/node': '^20.19.43', tsx: '^4.23.15', typescript: '^5.9.3' },
      },
    }),
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        target: 'ES2023',
        module: 'NodeNext',
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        types: ['node'],
      },
      include: ['note.ts', 'note.test.ts'],
    }),
    'vitest.config.ts': 'export default { test: { globals: true, testTimeout: 60_000, hookTimeout: 120_000 } };\n',
  });
  for (const runner of ['jest', 'vitest']) writeFileSync(join(app.folder, `note.${runner}.test.ts`), forGlobals);
});
afterAll(() => app.remove());

test('the test of the page compiles, and passes with the runner of Node.js', async () => {
  await app.tsc();
  const said = await app.node('--import', 'tsx', '--test', '--test-reporter=tap', 'note.test.ts');
  expect(said).toMatch(/^# pass 4$/m);
});

test('and with Jest', async () => {
  const bin = join('node_modules', 'jest', 'bin', 'jest.js');
  const said = await app.node(bin, '--json', 'note.jest.test.ts');
  expect(JSON.parse(said)).toMatchObject({ numPassedTests: 4, numTotalTests: 4, success: true });
});

test('and with Vitest', async () => {
  const bin = join('node_modules', 'vitest', 'vitest.mjs');
  const said = await app.node(bin, 'run', '--reporter=json', 'note.vitest.test.ts');
  expect(JSON.parse(said)).toMatchObject({ numPassedTests: 4, numTotalTests: 4, success: true });
});
