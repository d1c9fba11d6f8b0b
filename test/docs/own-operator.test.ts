import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds } from '../../constructs/kinds';
import { parseArguments } from '../../operator/arguments';
import { codeBlocks, filesIn } from '../support/code-blocks';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'add-your-own-kind.md'), 'utf8');

test('the operator of add-your-own-kind.md does something with every argument that its Deployment may give it', () => {
  const main = filesIn(codeBlocks(page))['main.ts'] ?? '';
  const given = Object.keys(parseArguments([], kinds));
  expect(given.length).toBeGreaterThan(8);
  expect(given.filter((field) => !new RegExp(`\\bargs\\.${field}\\b`).test(main))).toEqual([]);
});
