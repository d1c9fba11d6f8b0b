// Bundles what runs by itself: the operator (one file, for its image) and the command line.
// `node scripts/build.mjs [FOLDER]`: into that folder, `dist` by default.
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeBundle } from './bundle/node-bundle.mjs';
import { operatorOptions } from './bundle/operator-options.mjs';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

const common = {
  ...nodeBundle,
  absWorkingDir: fileURLToPath(new URL('..', import.meta.url)),
  outdir: resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url))),
  legalComments: 'linked',
  logLevel: 'warning',
};
const define = { 'process.env.KINDRED_VERSION': JSON.stringify(version) };

await Promise.all([
  build({ ...common, ...operatorOptions, entryPoints: { operator: 'operator/main.ts' }, define }),
  build({
    ...common,
    entryPoints: { cli: 'cli/main.ts' },
    // Scripts that are bundled are not started: only the entry point is the main module.
    define: { ...define, 'require.main': 'undefined' },
  }),
]);
