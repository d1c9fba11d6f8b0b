import { mkdir, statfs } from 'node:fs/promises';
import { codeOf, LocalControlPlaneError } from '../errors';
import { size } from '../progress';

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
export function explainFullDisk(error: unknown, folder: string, what: string): unknown {
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
