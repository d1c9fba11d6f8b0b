import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { SHARED_PACKAGES } from '../../cli/bundle/packages-outside';

export const root = join(__dirname, '..', '..');

/** Makes a folder look as if `npm install kindred` had been run in it. */
export function installKindred(folder: string): void {
  linkPackages(folder);
  symlinkSync(root, join(folder, 'node_modules', 'kindred'));
}

/** The packages that Kindred and its users share. */
export function linkPackages(folder: string): void {
  mkdirSync(join(folder, 'node_modules'));
  for (const name of SHARED_PACKAGES) symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
}
