import { build } from 'esbuild';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { barrels } from './barrels.mjs';
import { nodeBundle } from './node-bundle.mjs';

/** The files that determine `node_modules` and the build, so that thousands of files need not be checked. */
const alsoInputs = [
  'package-lock.json',
  'scripts/bundle/synth-bundle.mjs',
  'scripts/bundle/node-bundle.mjs',
  'scripts/bundle/barrels.mjs',
];

/**
 * Bundles `npm run synth`, and writes the list of its inputs beside it, as paths below the root.
 *
 * Guarantee: a process that runs at the same time finds the former bundle or this one, never half of one.
 *
 * @throws esbuild's BuildFailure, which it has printed
 */
export async function bundleSynth({ root, bundle, inputs }) {
  const { metafile, outputFiles } = await build({
    ...nodeBundle,
    absWorkingDir: root,
    entryPoints: { synth: 'cli/synth-main.ts' },
    outdir: dirname(bundle),
    minifyWhitespace: true,
    plugins: [barrels()],
    metafile: true,
    write: false,
  });
  await mkdir(dirname(bundle), { recursive: true });
  const own = Object.keys(metafile.inputs).filter((path) => !/(^|[/:])node_modules\/|^barrel:/.test(path));
  // The bundle comes last, as esbuild lists it after its map, because its age decides whether it is stale.
  await replace(inputs, JSON.stringify([...own, ...alsoInputs]));
  for (const { path, text } of outputFiles) await replace(path, text);
}

async function replace(path, text) {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text);
  await rename(draft, path);
}
