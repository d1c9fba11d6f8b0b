import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, readFile, readdir, rename, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LocalControlPlaneError, codeOf } from './errors';
import { hostPlatform, type Part, type Platform } from './parts';
import { size } from './progress';

/** What a look at a cache entry tells. */
type CacheState =
  | { readonly state: 'valid'; readonly file: string }
  | { readonly state: 'missing' }
  /** Half-built, cut short or changed since: not to be used. `reason` says how that was seen. */
  | { readonly state: 'broken'; readonly reason: string };

/** What stands beside each cached file, as `<file>.sha256.json`. */
interface CacheRecord {
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Modification time in whole milliseconds: while it and the size stand, the file is not hashed again. */
  readonly modified: number;
  /** Where the file came from, for people. */
  readonly source: string;
}

const draftSuffix = '.tmp';

/** Writes a part's file to the path it is given. */
type Producer = (file: string) => Promise<void>;

/** `$KINDRED_CACHE`, or `kindred` under `$XDG_CACHE_HOME`, or `~/.cache/kindred`. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env['KINDRED_CACHE']) return path.resolve(env['KINDRED_CACHE']);
  return path.join(env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'kindred');
}

/** Keeps files by part, version and platform, each with a seal that tells a whole file from a half-written one. */
export class PartCache {
  constructor(
    readonly folder: string,
    readonly platform: Platform = hostPlatform(),
  ) {}

  /** Where a part's file lies, whether or not it is there. */
  fileOf(part: Part): string {
    return path.join(this.#entry(part), part.fileName);
  }

  /** The lock that whoever makes this part holds. */
  lockOf(part: Part): string {
    return path.join(this.#entry(part), 'lock');
  }

  /**
   * Looks at the entry.
   *
   * @param thorough - hash the file even when its size and time stand
   */
  async check(part: Part, thorough = false): Promise<CacheState> {
    const file = this.fileOf(part);
    const [found, seal] = [await statIfAny(file), await readRecord(recordPath(file))];
    if (found === undefined && seal === undefined) return { state: 'missing' };
    if (found === undefined) return { state: 'broken', reason: 'the file is gone' };
    if (seal === undefined) return { state: 'broken', reason: 'it was never finished' };
    if (found.size !== seal.size) {
      return { state: 'broken', reason: `it has ${found.size} bytes, not the ${seal.size} it was stored with` };
    }
    const modified = Math.floor(found.mtimeMs);
    if (!thorough && modified === seal.modified) return { state: 'valid', file };
    const sha256 = await sha256Of(file);
    if (sha256 !== seal.sha256) {
      return { state: 'broken', reason: `it has sha256 ${sha256}, not the ${seal.sha256} it was stored with` };
    }
    if (modified !== seal.modified) await this.#writeSeal(file, { ...seal, modified });
    return { state: 'valid', file };
  }

  /**
   * Has the file made beside its place, then moves it there: readers see the old entry or the whole new one.
   *
   * @param source - where it comes from, for people
   * @throws LocalControlPlaneError when the disk runs full; else what the producer throws
   */
  async store(part: Part, source: string, produce: Producer): Promise<string> {
    const file = this.fileOf(part);
    const draft = `${file}.${randomUUID()}${draftSuffix}`;
    try {
      await mkdir(path.dirname(file), { recursive: true });
      await produce(draft);
      if (part.executable) await chmod(draft, 0o755);
      const sha256 = await sha256Of(draft);
      // The seal goes first: between the two writes the entry reads as broken, never as valid with wrong content.
      const modified = Math.floor(Date.now() / 1000) * 1000;
      await utimes(draft, modified / 1000, modified / 1000);
      await this.#writeSeal(file, { sha256, size: (await stat(draft)).size, modified, source });
      await rename(draft, file);
      return file;
    } catch (error) {
      throw explainFullDisk(error, this.folder, part.name);
    } finally {
      await rm(draft, { force: true });
    }
  }

  /** Removes drafts that a process left which died while making this part. To be called under the part's lock. */
  async removeDrafts(part: Part): Promise<void> {
    const folder = this.#entry(part);
    const drafts = (await readdir(folder)).filter((name) => name.includes(draftSuffix));
    await Promise.all(drafts.map((name) => rm(path.join(folder, name), { force: true })));
  }

  #entry(part: Part): string {
    return path.join(this.folder, 'parts', part.name, part.version, `${this.platform.os}-${this.platform.arch}`);
  }

  async #writeSeal(file: string, seal: CacheRecord): Promise<void> {
    const draft = `${recordPath(file)}.${randomUUID()}${draftSuffix}`;
    await writeFile(draft, `${JSON.stringify(seal, undefined, 2)}\n`);
    await rename(draft, recordPath(file));
  }
}

/** The sha256 of a file, in hex. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

function recordPath(file: string): string {
  return `${file}.sha256.json`;
}

async function statIfAny(file: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function readRecord(file: string): Promise<CacheRecord | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.parse(text) as CacheRecord;
  } catch {
    return undefined; // cut short: the same as never written
  }
}

/** The free bytes that a user without special rights has where `folder` lies. Replaced in tests. */
export type FreeSpace = (folder: string) => Promise<number>;

/** Free space as the file system reports it. */
export const freeSpace: FreeSpace = async (folder) => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/**
 * Makes sure that there is room for what is to be written, before minutes go into making it.
 *
 * @param needed - bytes
 * @throws LocalControlPlaneError when there is less
 */
export async function requireSpace(folder: string, needed: number, what: string, free: FreeSpace): Promise<void> {
  await mkdir(folder, { recursive: true });
  const available = await free(folder);
  if (available >= needed) return;
  throw new LocalControlPlaneError(
    `not enough disk space for ${what}: ${folder} has ${size(available)} free, ${size(needed)} are needed. ` +
      `Free some space there, or point KINDRED_CACHE at a folder on a larger disk.`,
  );
}

/** Turns "no space left" into an error that says where and what to do; hands every other error back as it is. */
function explainFullDisk(error: unknown, folder: string, what: string): unknown {
  const full = codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';
  return full ? fullDisk(folder, what, error) : error;
}

/** The error for a disk that ran full at `folder`. */
export function fullDisk(folder: string, what: string, cause?: unknown): LocalControlPlaneError {
  return new LocalControlPlaneError(
    `the disk ran full while writing ${what} under ${folder}. Nothing half-written is used. ` +
      `Free some space there, or point KINDRED_CACHE at a folder on a larger disk, and run again.`,
    { cause },
  );
}
