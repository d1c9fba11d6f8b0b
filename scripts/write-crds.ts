import { join } from 'node:path';
import { allKinds } from '../constructs/kinds';
import { writeCrdFiles } from './crd-files';

/** `npm run crds`: writes the kinds' CRDs to crds/. */
async function main(): Promise<void> {
  const changed = await writeCrdFiles(join(__dirname, '..', 'crds'), allKinds);
  for (const file of changed) console.log(`crds/${file}`);
}

void main();
