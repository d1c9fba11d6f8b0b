// `npm run synth`: runs cli/synth-main.ts as a bundle, which starts much faster than with a TypeScript
// loader. The bundle is built when it is missing or older than one of its inputs.
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
// Reading the source map takes a tenth of the time. So only a run that failed is repeated with it, to show
// where.
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
  // A new input need not be in the list: the file that imports it has changed, too.
  return JSON.parse(readFileSync(inputs, 'utf8')).some((path) => (modified(root + path) ?? Infinity) >= built);
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
