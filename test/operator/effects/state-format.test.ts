import { randomBytes } from 'node:crypto';
import { decodeState, encodeState, sizeOf, type StateData } from '../../../operator/effects/state-secret';

const records = { make: { input: 'i', countedFor: 'c', attempts: 1, state: 'succeeded', atMs: 1 } } as const;
const script = `echo 'é'\n${randomBytes(9_000).toString('hex')}`;
/** What is nearly the same for each of many machines. */
const large = { tasks: Array.from({ length: 200 }, (_, i) => `${String(i)} ${script}`).join('\n'), more: 'x' };

/** What versions before the second format read. */
function readBefore(data: StateData): unknown {
  return JSON.parse(data['effects.json']?.toString('utf8') ?? '{}');
}

test('a small state is stored as it ever was, for every version to read', async () => {
  const data = await encodeState({ records, values: { tasks: '[1]' } });
  expect(data).toEqual({ 'effects.json': Buffer.from(JSON.stringify(records)), 'value.tasks': Buffer.from('[1]') });
  expect(readBefore(data)).toEqual(records);
  expect(await decodeState(data)).toEqual({ records, values: { tasks: '[1]' } });
});

test('a large one that an older version stored is read', async () => {
  const data = Object.fromEntries(Object.entries(large).map(([name, value]) => [`value.${name}`, Buffer.from(value)]));
  const stored = { 'effects.json': Buffer.from(JSON.stringify(records)), ...data };
  expect(await decodeState(stored)).toEqual({ records, values: large });
});

test('a large one is compressed, and read', async () => {
  const data = await encodeState({ records, values: large });
  expect(sizeOf(data)).toBeLessThan(large.tasks.length / 100);
  expect(await decodeState(data)).toEqual({ records, values: large });
});

test('a version that does not know of the compression fails at reading, and so begins nothing anew', async () => {
  const data = await encodeState({ records, values: large });
  expect(() => readBefore(data)).toThrow(SyntaxError);
});

test('what is none is an error, and not an empty state', async () => {
  await expect(decodeState({ 'effects.json': Buffer.from('v2 {}'), 'value.a': Buffer.from('x') })).rejects.toThrow();
  await expect(decodeState({ 'effects.json': Buffer.from('v3 {}') })).rejects.toThrow();
  expect(await decodeState({})).toEqual({ records: {}, values: {} });
});
