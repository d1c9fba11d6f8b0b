// Bundles the programs: the operator and the provisioner (one file each, for their images) and the command line.
// `node scripts/build.mjs [DIRECTORY] [METAFILE]`: into that directory, `dist` by default. METAFILE receives
// esbuild's metafile of the two images' bundles.
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
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
const metafile = process.argv[3];
const define = { 'process.env.KINDRED_VERSION': JSON.stringify(version) };

const [{ metafile: contents }] = await Promise.all([
  build({
    ...{ ...common, ...operatorOptions, define, metafile: metafile !== undefined },
    entryPoints: { operator: 'operator/kindred.ts', provisioner: 'provisioner/main.ts' },
  }),
  build({
    ...common,
    entryPoints: { cli: 'cli/main.ts' },
    // Keeps bundled scripts from running: only the entry point is the main module.
    define: { ...define, 'require.main': 'undefined' },
  }),
]);
if (metafile !== undefined) writeFileSync(metafile, JSON.stringify(contents));
