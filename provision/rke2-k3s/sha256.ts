/** The SHA-256 of a text's UTF-8, in hexadecimal, to compare plans. Not for secrets. */
export function sha256(text: string): string {
  const words = padded(new TextEncoder().encode(text));
  let state: readonly number[] = START;
  for (let at = 0; at < words.length; at += 16) state = compress(state, words.slice(at, at + 16));
  return state.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

/** The bytes, a one bit, zeros, and the length in bits, as big-endian words; whole blocks of 16. */
function padded(bytes: Uint8Array): number[] {
  const words = new Array<number>(Math.ceil((bytes.length + 9) / 64) * 16).fill(0);
  const add = (byte: number, i: number): void => {
    words[i >> 2] = (words[i >> 2] ?? 0) | (byte << (24 - (i % 4) * 8));
  };
  bytes.forEach(add);
  add(0x80, bytes.length);
  words[words.length - 2] = Math.floor((bytes.length * 8) / 2 ** 32);
  words[words.length - 1] = (bytes.length * 8) | 0;
  return words;
}

const PRIMES = firstPrimes(64);
/** The fractional parts of the cube roots of the first 64 primes, 32 bits each. Source: FIPS 180-4, 4.2.2. */
const K = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
/** Those of the square roots of the first eight. Source: FIPS 180-4, 5.3.3. */
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));

function firstPrimes(count: number): readonly number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

function compress(state: readonly number[], block: readonly number[]): readonly number[] {
  const w = [...block];
  for (let i = 16; i < 64; i += 1) {
    const a = word(w, i - 15);
    const b = word(w, i - 2);
    const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3);
    const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10);
    w.push((word(w, i - 16) + s0 + word(w, i - 7) + s1) | 0);
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i += 1) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const first = (h + s1 + ((e & f) ^ (~e & g)) + word(K, i) + word(w, i)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  return [a, b, c, d, e, f, g, h].map((value, i) => (value + word(state, i)) | 0);
}

const word = (words: readonly number[], i: number): number => words[i] ?? 0;

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by));
