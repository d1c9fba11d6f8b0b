import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { withLock } from '../local/assets/lock';
import { ImageError, isDigest } from './oci';
import { writeAtomically } from './temporary-files';

/** The content of the lock file: the digest of each base, by its name with the tag. */
const lockFile = z.looseObject({ bases: z.record(z.string(), z.string()) });
type LockFile = z.output<typeof lockFile>;

/** The name of the lock file, which stands beside package.json and belongs into version control. */
export const LOCK_FILE = 'kindred.lock.json';

/**
 * The digest that the lock file has for a base.
 *
 * @returns undefined when it has none
 * @throws ImageError when the file is not valid
 */
export async function lockedDigest(file: string, base: string): Promise<string | undefined> {
  const digest = (await readLock(file)).bases[base];
  if (digest === undefined || isDigest(digest)) return digest;
  throw new ImageError(`${file}: the digest of ${base} is not sha256: and 64 hexadecimal digits. Remove that line.`);
}

/** Writes the digest of a base into the lock file. */
export async function lockDigest(file: string, base: string, digest: string): Promise<void> {
  const write = async (): Promise<void> => {
    const lock = await readLock(file);
    const sorted = Object.entries({ ...lock.bases, [base]: digest }).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const text = `${JSON.stringify({ ...lock, bases: Object.fromEntries(sorted) }, undefined, 2)}\n`;
    await writeAtomically(file, (temporary) => writeFile(temporary, text));
  };
  const options = { purpose: file, onProgress: () => undefined, timeoutMs: 60_000, pollMs: 20 };
  try {
    // Another build may be writing the digest of its own base.
    await withLock(`${file}.lock`, options, write);
  } catch (cause) {
    if (cause instanceof ImageError) throw cause;
    throw new ImageError(`${file}, which keeps the digest of the base, cannot be written: ${messageOf(cause)}`, {
      cause,
    });
  }
}

async function readLock(file: string): Promise<LockFile> {
  try {
    const text = await readFile(file, 'utf8').catch(undefinedIfMissing);
    if (text === undefined) return { bases: {} };
    const parsed = lockFile.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    throw new Error('it has no bases, each with its digest');
  } catch (cause) {
    throw new ImageError(`${file} cannot be used: ${messageOf(cause)}. Correct it, or remove it.`, { cause });
  }
}
