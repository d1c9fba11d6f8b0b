import { readFile, writeFile } from 'node:fs/promises';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { ImageError, isDigest } from './oci';

/** The content of the lock file: the digest of each base, by its name with the tag. */
interface LockFile {
  readonly bases: Readonly<Record<string, string>>;
}

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
  const { bases } = await readLock(file);
  const sorted = Object.entries({ ...bases, [base]: digest }).toSorted(([a], [b]) => (a < b ? -1 : 1));
  try {
    await writeFile(file, `${JSON.stringify({ bases: Object.fromEntries(sorted) }, undefined, 2)}\n`);
  } catch (cause) {
    throw new ImageError(`${file}, which keeps the digest of the base, cannot be written: ${messageOf(cause)}`, {
      cause,
    });
  }
}

async function readLock(file: string): Promise<LockFile> {
  const text = await readFile(file, 'utf8').catch(undefinedIfMissing);
  if (text === undefined) return { bases: {} };
  try {
    const { bases = {} } = JSON.parse(text) as Partial<LockFile>;
    return { bases };
  } catch (cause) {
    throw new ImageError(`${file} is not valid JSON: ${messageOf(cause)}. Correct it, or remove it.`, { cause });
  }
}
