import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { sha256 } from '../../../provision/rke2-k3s/sha256';

const expected = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

test.each([0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 1000])('a text of %i characters', (length) => {
  expect(sha256('a'.repeat(length))).toBe(expected('a'.repeat(length)));
});

test('any text, as UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => expect(sha256(text)).toBe(expected(text))),
  );
});
