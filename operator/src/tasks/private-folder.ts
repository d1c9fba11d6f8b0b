import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Does something with a folder that only this user may look into, and removes it.
 *
 * @param parent - best a file system in memory: what is written there never reaches a disk
 */
export async function withPrivateFolder<T>(parent: string, use: (folder: PrivateFolder) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(parent, 'kindred-ssh-')); // mode 0700
  try {
    return await use(new PrivateFolder(path));
  } finally {
    await rm(path, { recursive: true, force: true });
  }
}

/** A folder for files that only this user may read. */
export class PrivateFolder {
  constructor(private readonly path: string) {}

  file(name: string): string {
    return join(this.path, name);
  }

  /** @returns the path of the new file */
  async write(name: string, content: string): Promise<string> {
    const file = this.file(name);
    await writeFile(file, content, { mode: 0o600, flag: 'wx' });
    return file;
  }
}
