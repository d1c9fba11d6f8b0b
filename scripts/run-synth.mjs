// `npm run synth`: runs scripts/synth.ts as a bundle, which starts in a fraction of the time that a TypeScript loader takes. The bundle is
// made when it is missing or older than anything it was made of.
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bundle = `${root}dist/synth.cjs`;
const inputs = `${root}dist/synth.inputs.json`;

if (isStale()) {
  const { bundleSynth } = await import('./bundle/synth-bundle.mjs');
  await bundleSynth({ root, bundle, inputs });
}
process.setSourceMapsEnabled(true);
createRequire(import.meta.url)(bundle);

function isStale() {
  const built = modified(bundle);
  if (built === undefined || modified(inputs) === undefined) return true;
  // A file that comes to be an input makes another input change: the one that imports it.
  return JSON.parse(readFileSync(inputs, 'utf8')).some((path) => (modified(root + path) ?? Infinity) >= built);
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
