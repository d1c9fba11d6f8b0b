// Bundles a program of this directory with the operator's settings: node bench/bundle.mjs <name> <file>
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';
import { operatorOptions } from '../scripts/bundle/operator-options.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

export async function bundle(name, outfile) {
  await build({
    ...operatorOptions,
    // It fails the build without the client's imports, which a benchmark need not have.
    plugins: operatorOptions.plugins.filter((plugin) => plugin.name !== 'absent'),
    absWorkingDir: root,
    entryPoints: [`bench/${name}.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs',
    logLevel: 'warning',
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(...process.argv.slice(2));
