import fc from 'fast-check';
import { LineDecoder } from '../../../operator/client/watch-stream';

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let start = 0;
  for (const size of sizes) {
    if (start >= bytes.length) break;
    chunks.push(bytes.subarray(start, start + size));
    start += size;
  }
  if (start < bytes.length) chunks.push(bytes.subarray(start));
  return chunks;
}

test('any lines in any chunks come out as they went in', () => {
  const lines = fc.array(fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify({ value, text: '€🦊' })));
  fc.assert(
    fc.property(lines, fc.array(fc.integer({ min: 1, max: 17 })), fc.boolean(), (input, sizes, ended) => {
      const text = input.map((line) => `${line}\n`).join('') + (ended ? '' : '{"half');
      const decoder = new LineDecoder();
      const output = cut(Buffer.from(text), sizes).flatMap((chunk) => [...decoder.push(chunk)]);
      expect(output).toEqual(input);
      expect(decoder.pendingBytes).toBe(ended ? 0 : 6);
    }),
  );
});

test('empty lines and carriage returns alone are left out', () => {
  expect([...new LineDecoder().push(Buffer.from('\n\r\n{}\n\n'))]).toEqual(['{}']);
});

test('a line without end is refused before it fills the memory', () => {
  const decoder = new LineDecoder(10);
  expect([...decoder.push(Buffer.from('12345678'))]).toEqual([]);
  expect(() => [...decoder.push(Buffer.from('9abc'))]).toThrow('longer than 10 bytes');
});

test('a big line in many chunks is copied once', () => {
  const concat = jest.spyOn(Buffer, 'concat');
  const decoder = new LineDecoder();
  const chunk = Buffer.alloc(4096, 'x');
  const ended = Array.from({ length: 8192 }, () => decoder.push(chunk).next().done);
  expect(new Set(ended)).toEqual(new Set([true]));
  const [line] = decoder.push(Buffer.from('\n'));
  expect(line).toHaveLength(8192 * 4096);
  const copied = concat.mock.calls.flatMap(([list]) => list).reduce((sum, { length }) => sum + length, 0);
  concat.mockRestore();
  // Quadratic concatenation would copy 137 GB.
  expect(copied).toBe(8192 * 4096);
});
