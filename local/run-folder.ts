import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { isAlive, ownIdentity, parseIdentity, type ProcessIdentity } from './assets/process';
import { codeOf, LocalControlPlaneError, undefinedIfMissing } from './assets/errors';
import type { Progress } from './assets/progress';

const ownerFile = 'owner.json';

/** The directory of everything that one run writes. */
export class RunFolder {
  readonly path: string;

  private constructor(folder: string) {
    this.path = folder;
  }

  /**
   * Creates the directory of a run and marks it with its owner.
   *
   * @param folder - its path, which must not exist, be empty, or be what a crashed run left; by default a new
   * one under the system's temporary directory
   * @throws LocalControlPlaneError when the directory is not empty
   */
  static async create(folder?: string): Promise<RunFolder> {
    const chosen = path.resolve(folder ?? path.join(runsFolder(), `run-${randomBytes(5).toString('hex')}`));
    if (await isStale(chosen)) await rm(chosen, { recursive: true, force: true, maxRetries: 3 });
    await mkdir(chosen, { recursive: true, mode: 0o700 });
    const contents = await readdir(chosen);
    if (contents.length > 0) {
      throw new LocalControlPlaneError(
        `the data folder ${chosen} is not empty, and stop() would remove what is in it. Give an empty or a new folder.`,
      );
    }
    const run = new RunFolder(chosen);
    run.write(ownerFile, JSON.stringify(ownIdentity()));
    return run;
  }

  /** The path of something in the directory. */
  file(...names: readonly string[]): string {
    return path.join(this.path, ...names);
  }

  /** Writes a file that only its owner may read, and returns its path. */
  write(name: string, content: string): string {
    const file = this.file(name);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  }

  /** Creates a subdirectory, and returns its path. */
  folder(name: string): string {
    const folder = this.file(name);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  /**
   * Removes the directory with all its contents. Synchronous, so that it can be the last action of a process.
   */
  remove(): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The default place of run directories; one for each user, since the temporary directory is shared. */
function runsFolder(): string {
  return path.join(tmpdir(), `kindred-local-${userInfo().username}`);
}

/** Removes the directories of crashed runs: those whose owner is dead. */
export async function removeStaleRuns(onProgress: Progress, folder = runsFolder()): Promise<void> {
  for (const name of await listIfAny(folder)) {
    const run = path.join(folder, name);
    // Only one of several processes that start now succeeds in renaming it; one that was renamed but not
    // removed has no owner.
    const moving = !name.endsWith(doomedSuffix);
    if (moving && !(await isStale(run)) && !(await isAbandoned(run))) continue;
    const doomed = moving ? `${run}${doomedSuffix}` : run;
    if (moving && !(await moved(run, doomed))) continue;
    onProgress(`removing what a crashed run left in ${run}`);
    await rm(doomed, { recursive: true, force: true, maxRetries: 3 });
  }
}

const doomedSuffix = '.stale';

/**
 * A directory without an owner file may belong to a run that is just starting; after this time, it does not.
 */
const unmarkedGraceMs = 3600 * 1000;

/** Whether a dead process owns the directory. */
async function isStale(run: string): Promise<boolean> {
  const owner = await readOwner(run);
  return owner !== undefined && !isAlive(owner);
}

/** Whether the directory has been without an owner for long. */
async function isAbandoned(run: string): Promise<boolean> {
  if ((await readOwner(run)) !== undefined) return false;
  const found = await stat(run).catch(undefinedIfMissing);
  return found !== undefined && Date.now() - found.mtimeMs > unmarkedGraceMs;
}

async function readOwner(run: string): Promise<ProcessIdentity | undefined> {
  try {
    return parseIdentity(await readFile(path.join(run, ownerFile), 'utf8'));
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function listIfAny(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(undefinedIfMissing)) ?? [];
}
