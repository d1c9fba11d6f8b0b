import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { kinds, provisionerKinds } from '../constructs/kinds';
import { version } from '../package.json';
import { manifests } from '../scripts/synth';
import type { SynthArguments } from './arguments';

/** `kindred synth`: writes the platform's manifests and the samples. */
export async function synth(args: SynthArguments): Promise<void> {
  const files = manifests({
    kinds,
    provisionerKinds,
    image: args.image ?? `kindred-operator:${version}`,
    provisionerImage: args.provisionerImage,
    namespace: args.namespace,
    samplesNamespace: args.samplesNamespace,
  });
  await mkdir(args.out, { recursive: true });
  for (const [name, text] of files) {
    const file = path.join(args.out, name);
    await writeFile(file, text);
    process.stdout.write(`${file}\n`);
  }
}
