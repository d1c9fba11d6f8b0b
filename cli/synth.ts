import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { kinds, provisionerKinds } from '../constructs/kinds';
import { messageOf } from '../local/errors';
import { version } from '../package.json';
import { manifests } from '../scripts/synth';
import type { SynthArguments } from './arguments';
import { CliError } from './errors';

/**
 * `kindred synth`: writes the platform's manifests and the samples.
 *
 * @throws CliError when the files cannot be written where they shall go
 */
export async function synth(args: SynthArguments): Promise<void> {
  const files = manifests({
    kinds,
    provisionerKinds,
    image: args.image ?? `kindred-operator:${version}`,
    provisionerImage: args.provisionerImage,
    provisionerConfigSecret: args.provisionerConfigSecret,
    provisionerConfigFiles: args.provisionerConfigFiles,
    namespace: args.namespace,
    samplesNamespace: args.samplesNamespace,
  });
  await inFolder(args.out, () => mkdir(args.out, { recursive: true }));
  for (const [name, text] of files) {
    const file = path.join(args.out, name);
    await inFolder(args.out, () => writeFile(file, text));
    process.stdout.write(`${file}\n`);
  }
}

async function inFolder(out: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    throw new CliError(
      `--out=${out} cannot be written to: ${messageOf(error)}. Name a folder that you may write to; it is made if need be.`,
      { cause: error },
    );
  }
}
