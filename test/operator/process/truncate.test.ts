import { truncate } from '../../../operator/process/truncate';

test.each([
  ['what is short enough', 'abc', 3, 'abc'],
  ['the first characters', 'abcdef', 3, 'abc'],
  ['whole characters beyond ASCII', 'äöü€', 3, 'äöü'],
  ['half a character as one that cannot be shown', 'ab😀', 3, 'ab\uFFFD'],
  ['nothing', 'abc', 0, ''],
])('%s', (_what, text, length, beginning) => {
  expect(truncate(text, length)).toBe(beginning);
});
