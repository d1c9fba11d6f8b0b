import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { undefinedIfMissing } from '../local/assets/errors';

/** Files that become others when they are complete. A command that is interrupted removes them. */
const files = new Set<string>();

/** The name of a file beside another one, which it becomes by a rename. */
export function temporaryFile(file: string, id: string): string {
  const temporary = `${file}.${id}.tmp`;
  files.add(temporary);
  return temporary;
}

/** Removes a temporary file, if it was not renamed. */
export async function removeTemporary(temporary: string): Promise<void> {
  await rm(temporary, { force: true }).catch(undefinedIfMissing);
  files.delete(temporary);
}

/** Removes all of them, before the process ends. */
export function removeTemporaryFiles(): void {
  for (const file of files) rmSync(file, { force: true });
}
