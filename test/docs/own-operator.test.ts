import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds } from '../../constructs/kinds';
import { parseArguments } from '../../operator/arguments';
import { codeBlocks, filesIn } from '../support/code-blocks';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'add-your-own-kind.md'), 'utf8');

/** For kinds that act on machines, which are not what the page is about. */
const leftOut = ['provisioner'];

test('the operator of add-your-own-kind.md does something with every argument that its Deployment may give it', () => {
  const main = filesIn(codeBlocks(page))['main.ts'] ?? '';
  const given = Object.keys(parseArguments([], kinds)).filter((field) => !leftOut.includes(field));
  expect(given.length).toBeGreaterThan(8);
  expect(given.filter((field) => !new RegExp(`\\bargs\\.${field}\\b`).test(main))).toEqual([]);
});
