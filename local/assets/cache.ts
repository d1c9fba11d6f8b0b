import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, readFile, readdir, rename, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LocalControlPlaneError, codeOf } from './errors';
import { hostPlatform, type Part, type Platform } from './parts';
import { size } from './progress';

/** The state of a cache entry. */
type CacheState =
  | { readonly state: 'valid'; readonly file: string }
  | { readonly state: 'missing' }
  /** Half-built, truncated or changed since: must not be used. `reason` says how that was detected. */
  | { readonly state: 'broken'; readonly reason: string };

/** Writes a part's file to the given path. */
type Producer = (file: string) => Promise<void>;

/**
 * Stores files by part, version and platform, each with a record that distinguishes a complete file from a
 * half-written one.
 */
export class PartCache {
  constructor(
    readonly folder: string,
    readonly platform: Platform = hostPlatform(),
  ) {}

  /** The path of a part's file, whether or not it exists. */
  fileOf(part: Part): string {
    return path.join(this.#entry(part), part.fileName);
  }

  /** The lock for storing this part. */
  lockOf(part: Part): string {
    return path.join(this.#entry(part), 'lock');
  }

  /**
   * Checks the entry.
   *
   * @param thorough - hashes the file even when its size and time are unchanged
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
   * Produces the file beside its place, then moves it there: readers see the old entry or the complete new
   * one.
   *
   * @param source - where it comes from, for people
   * @throws LocalControlPlaneError when the disk is full; else the producer's error
   */
  async store(part: Part, source: string, produce: Producer): Promise<string> {
    const file = this.fileOf(part);
    const draft = `${file}.${randomUUID()}${draftSuffix}`;
    try {
      await mkdir(path.dirname(file), { recursive: true });
      await produce(draft);
      if (part.executable) await chmod(draft, 0o755);
      const sha256 = await sha256Of(draft);
      // The record goes first: between the two writes the entry is `broken`, never `valid` with wrong
      // content.
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

  /** Removes drafts of a process that died while storing this part. The caller must own the part's lock. */
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

/** `$KINDRED_CACHE`, or `kindred` under `$XDG_CACHE_HOME`, or `~/.cache/kindred`. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env['KINDRED_CACHE']) return path.resolve(env['KINDRED_CACHE']);
  return path.join(env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'kindred');
}

/** The record beside each cached file, `<file>.sha256.json`. A file without one is incomplete. */
interface CacheRecord {
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /**
   * Modification time in whole milliseconds: while it and the size are unchanged, the file is not hashed
   * again.
   */
  readonly modified: number;
  /** The source of the file, for people. */
  readonly source: string;
}

const draftSuffix = '.tmp';

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
    return undefined; // truncated: the same as never written
  }
}

/** The free bytes for an unprivileged user on the file system of `folder`. Replaced in tests. */
export type FreeSpace = (folder: string) => Promise<number>;

/** Free space as the file system reports it. */
export const freeSpace: FreeSpace = async (folder) => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/**
 * Checks that there is enough space, before a part is built for minutes.
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

/**
 * Converts "no space left" to an error that says where and what to do; returns every other error unchanged.
 */
function explainFullDisk(error: unknown, folder: string, what: string): unknown {
  const full = codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';
  return full ? fullDisk(folder, what, error) : error;
}

/** The error for a full disk at `folder`. */
export function fullDisk(folder: string, what: string, cause?: unknown): LocalControlPlaneError {
  return new LocalControlPlaneError(
    `the disk ran full while writing ${what} under ${folder}. Nothing half-written is used. ` +
      `Free some space there, or point KINDRED_CACHE at a folder on a larger disk, and run again.`,
    { cause },
  );
}
