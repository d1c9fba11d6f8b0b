import { printable } from '../../../provision/task/script-io';

test.each([
  [
    'plain text stays, with its lines',
    'node 1: swap is on\n/etc/fstab: é 日 😀',
    100,
    'node 1: swap is on\n/etc/fstab: é 日 😀',
  ],
  ['escape sequences go', '\u001b[31;1mred\u001b[0m \u001b]0;title\u0007and more', 100, 'red and more'],
  ['what is not printable becomes a space', 'a\u0000b\tc\rd\u202ee\u2028f\ud800g', 100, 'a b c d e f g'],
  ['a long text ends with dots', 'abcdefghij', 8, 'abcde...'],
  ['a text that just fits is whole', 'abcdefgh', 8, 'abcdefgh'],
  ['no character is cut in two', '1234😀6789', 8, '1234...'],
  ['a text that is long only by what goes is whole', '\u001b[0m\u001b[0mabcd', 8, 'abcd'],
])('%s', (_, text, length, shown) => {
  expect(printable(text, length)).toBe(shown);
});

test('a text of megabytes is cut at once, whatever it holds', () => {
  const started = performance.now();
  for (const piece of ['x', '\u001b', '\u001b[', '\u001b]', '\u0000']) {
    expect(printable(piece.repeat(4_000_000), 512).length).toBeLessThanOrEqual(512);
  }
  expect(performance.now() - started).toBeLessThan(1000);
});
