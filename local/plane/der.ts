/**
 * The few DER encodings that an X.509 certificate needs (ITU-T X.690). Each function returns a whole
 * tag-length-value element.
 */

/** An element with any tag. */
export function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

export function sequence(...items: readonly Buffer[]): Buffer {
  return element(0x30, ...items);
}

export function set(...items: readonly Buffer[]): Buffer {
  return element(0x31, ...items);
}

/** An element tagged for its place in a structure: `[number]`. */
export function tagged(number: number, ...contents: readonly Buffer[]): Buffer {
  return element(0xa0 | number, ...contents);
}

/** A non-negative integer, given as big-endian bytes. */
export function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first === -1 ? Buffer.from([0]) : bytes.subarray(first);
  // A leading 1 bit would make it negative.
  const positive = (shortest[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), shortest]) : shortest;
  return element(0x02, positive);
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0x00]));
}

/** An object identifier, given in dots: `1.2.840.10045.4.3.2`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text, 'utf8'));
}

export function octetString(content: Buffer): Buffer {
  return element(0x04, content);
}

/** A bit string whose last byte leaves `unused` bits out. */
export function bitString(content: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), content);
}

/** A moment before 2050, to the second, as certificates write it. */
export function utcTime(moment: Date): Buffer {
  const digits = moment.toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`, 'ascii'));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}
