// Bundles what runs by itself: the operator (one file, for its image) and the command line.
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { operatorOptions } from './bundle/operator-options.mjs';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

const common = {
  absWorkingDir: fileURLToPath(new URL('..', import.meta.url)),
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  minifySyntax: true,
  sourcemap: 'linked',
  legalComments: 'linked',
  logLevel: 'warning',
};
const define = { 'process.env.KINDRED_VERSION': JSON.stringify(version) };

await Promise.all([
  build({ ...common, ...operatorOptions, entryPoints: { operator: 'operator/src/main.ts' }, define }),
  build({
    ...common,
    entryPoints: { cli: 'cli/main.ts' },
    // Scripts that are bundled are not started: only the entry point is the main module.
    define: { ...define, 'require.main': 'undefined' },
  }),
]);
