// Bundles a benchmark as the operator is bundled, and runs it: node bench/run.mjs <name> [arguments]
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { operatorOptions } from '../scripts/bundle/operator-options.mjs';

const [name, ...args] = process.argv.slice(2);
const root = fileURLToPath(new URL('..', import.meta.url));
const outfile = `${root}/dist/bench/${name}.cjs`;

await build({
  ...operatorOptions,
  // It insists on finding the client's imports, which a benchmark need not have.
  plugins: operatorOptions.plugins.filter(({ name }) => name !== 'absent'),
  absWorkingDir: root,
  entryPoints: [`bench/${name}.ts`],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  logLevel: 'warning',
});
process.exitCode = spawnSync(process.execPath, [outfile, ...args], { stdio: 'inherit' }).status ?? 1;
