import fc from 'fast-check';
import { compareResourceVersions } from '../../../operator/client/api-client';

test('orders like the integers they are, however big', () => {
  const big = fc.bigInt({ min: 0n, max: 2n ** 128n });
  fc.assert(
    fc.property(big, big, (a, b) => {
      const expected = a < b ? -1 : a > b ? 1 : 0;
      expect(Math.sign(compareResourceVersions(String(a), String(b)))).toBe(expected);
    }),
  );
});

test('nothing is older than any', () => {
  expect(compareResourceVersions('', '0')).toBeLessThan(0);
  expect(compareResourceVersions('', '')).toBe(0);
});
