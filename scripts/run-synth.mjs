// `npm run synth`: runs cli/synth-main.ts as a bundle, which starts in a fraction of the time that a TypeScript loader takes. The bundle is
// made when it is missing or older than anything it was made of.
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runCached } from './bundle/run-cached.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bundle = `${root}dist/synth.cjs`;
const inputs = `${root}dist/synth.inputs.json`;

if (isStale()) {
  const { bundleSynth } = await import('./bundle/synth-bundle.mjs');
  await bundleSynth({ root, bundle, inputs });
}
// Reading the source map takes a tenth of the time; what fails is run once more, with it, to say where.
process.once('uncaughtException', () => {
  const again = spawnSync(process.execPath, ['--enable-source-maps', bundle, ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  process.exit(again.status ?? 1);
});
runCached(bundle, `${root}dist/synth.code-cache`);

function isStale() {
  const built = modified(bundle);
  if (built === undefined || modified(inputs) === undefined) return true;
  // A file that comes to be an input makes another input change: the one that imports it.
  return JSON.parse(readFileSync(inputs, 'utf8')).some((path) => (modified(root + path) ?? Infinity) >= built);
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
