import { join } from 'node:path';
import { allKinds } from '../constructs/kinds';
import { brokenPromises, staleCrdFiles } from './crd-files';

/**
 * Fails when crds/ is stale, or has breaking changes since the last release (crds/baseline/, if there was
 * one).
 */
async function main(): Promise<void> {
  const folder = join(__dirname, '..', 'crds');
  for (const file of await staleCrdFiles(folder, allKinds)) {
    console.error(`crds/${file} is stale; run: npm run crds`);
    process.exitCode = 1;
  }
  for (const broken of await brokenPromises(folder)) {
    console.error(broken);
    process.exitCode = 1;
  }
}

void main();
