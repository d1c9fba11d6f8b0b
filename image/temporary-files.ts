import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { undefinedIfMissing } from '../local/assets/errors';

/** Files that are not complete yet. A command that is interrupted removes them. */
const files = new Set<string>();

/**
 * Writes a file as a whole: under another name beside it, which becomes its name when it is complete.
 *
 * @throws what `write` throws, and errors of the rename; nothing is left then
 */
export async function writeAtomically(file: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  files.add(temporary);
  try {
    await write(temporary);
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true }).catch(undefinedIfMissing);
    files.delete(temporary);
  }
}

/** Removes what is not complete, before the process ends. */
export function removeTemporaryFiles(): void {
  for (const file of files) rmSync(file, { force: true });
}
