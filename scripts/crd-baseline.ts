import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { breakingChanges } from '../constructs/crd';
import { readCrdFiles } from './crd-files';

/**
 * What the CRDs in a folder break of the last release, which stands in `baseline` below it: one line a field. Nothing before the first
 * release, when there is no such folder.
 */
export async function brokenPromises(folder: string): Promise<readonly string[]> {
  const baseline = join(folder, 'baseline');
  if (!existsSync(baseline)) return [];
  const [before, after] = await Promise.all([readCrdFiles(baseline), readCrdFiles(folder)]);
  return [...before].flatMap(([file, crd]) => {
    const now = after.get(file);
    if (now === undefined) return [`${file}: the kind is gone; objects of it would be deleted`];
    return breakingChanges(crd, now).map(({ path, message }) => `${file}: ${path}: ${message}`);
  });
}
