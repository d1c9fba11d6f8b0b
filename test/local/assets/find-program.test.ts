import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../../local/assets/process';
import { temporaryFolder } from '../../support/temporary-folder';

test('finds the first file of the name that may be executed', () => {
  const folder = temporaryFolder('find-program-');
  const [first = '', second = '', third = '', fourth = ''] = ['1', '2', '3', '4'].map((name) => join(folder, name));
  for (const each of [first, second, third, fourth]) mkdirSync(each);
  mkdirSync(join(first, 'tool'));
  writeFileSync(join(second, 'tool'), 'a text');
  chmodSync(join(second, 'tool'), 0o644);
  for (const each of [third, fourth]) writeFileSync(join(each, 'tool'), '#!/bin/sh\n', { mode: 0o755 });
  expect(findProgram('tool', [join(folder, 'none'), first, second, third, fourth].join(':'))).toBe(join(third, 'tool'));
  expect(findProgram('tool', [first, second].join(':'))).toBeUndefined();
});

test('skips an empty entry, which to a shell is the current folder', () => {
  expect(findProgram('.ci/run', process.cwd())).toBe(join(process.cwd(), '.ci/run'));
  expect(findProgram('.ci/run', '')).toBeUndefined();
  expect(findProgram('sh', ':/usr/bin:/bin')).toMatch(/\/sh$/);
});

test('looks on PATH unless told otherwise', () => {
  expect(findProgram('sh')).toMatch(/\/sh$/);
});
