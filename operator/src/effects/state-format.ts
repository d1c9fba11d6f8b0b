import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import type { EffectRecord } from './effect-record';
import type { EffectState } from './effect-store';

/** Key of the records within a Secret's data. */
const RECORDS = 'effects.json';
/** In front of the names of values, as keys. */
const VALUE = 'value.';

/**
 * In front of the records where the values are compressed. It makes them no JSON, so that a version that does not know of it fails at reading them, and
 * neither begins anew nor writes over them.
 */
const COMPRESSED = 'v2 ';

/** States up to this many bytes are stored as they are, which every version reads. */
const PLAIN_BYTES = 262_144;

/** The largest value that is read, in bytes: what is compressed is our own, but memory has an end. */
const MAX_VALUE_BYTES = 268_435_456;

/** As quick as gzip, with a window over all of it: scripts of 200 machines differ in little, and lie some 20 KiB apart. */
const SETTINGS = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
};

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

/** What a Secret holds, by key, before it is encoded in base64. */
export type StateData = Readonly<Record<string, Buffer>>;

/**
 * A state as a Secret's data. There are two formats: `effects.json` has the records in JSON and `value.<name>` each value; where that is more than
 * 256 KiB, "v2 " stands before the records, and each value is compressed by Brotli.
 */
export async function encodeState({ records, values }: EffectState): Promise<StateData> {
  const text = JSON.stringify(records);
  const entries = Object.entries(values).map(([name, value]) => [VALUE + name, Buffer.from(value, 'utf8')] as const);
  const plain = { [RECORDS]: Buffer.from(text, 'utf8'), ...Object.fromEntries(entries) };
  if (sizeOf(plain) <= PLAIN_BYTES) return plain;
  const compressed = entries.map(async ([key, value]) => [key, await compress(value, SETTINGS)] as const);
  return { [RECORDS]: Buffer.from(COMPRESSED + text, 'utf8'), ...Object.fromEntries(await Promise.all(compressed)) };
}

/** The state that a Secret's data hold, in whichever format. @throws Error when they are none */
export async function decodeState(data: StateData): Promise<EffectState> {
  const text = data[RECORDS]?.toString('utf8') ?? '{}';
  const isCompressed = text.startsWith(COMPRESSED);
  const records = JSON.parse(isCompressed ? text.slice(COMPRESSED.length) : text) as Record<string, EffectRecord>;
  const values = Object.entries(data)
    .filter(([key]) => key.startsWith(VALUE))
    .map(async ([key, value]) => {
      const bytes = isCompressed ? await decompress(value, { maxOutputLength: MAX_VALUE_BYTES }) : value;
      return [key.slice(VALUE.length), bytes.toString('utf8')] as const;
    });
  return { records, values: Object.fromEntries(await Promise.all(values)) };
}

/** As the API server counts it: the bytes of the values. Source: `ValidateSecret` of Kubernetes. */
export function sizeOf(data: StateData): number {
  return Object.values(data).reduce((sum, { length }) => sum + length, 0);
}
