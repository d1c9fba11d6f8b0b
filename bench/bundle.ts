import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { build } from 'esbuild';
import { nodeBundle, operatorOptions } from '../cli/bundle/options';

const root = path.join(__dirname, '..');

/** Bundles a program of this directory with the operator's settings. */
export async function bundle(name: string, outfile: string): Promise<void> {
  await build({
    ...operatorOptions({ kindred: root, strict: false }),
    ...nodeBundle,
    absWorkingDir: root,
    entryPoints: [`bench/${name}.ts`],
    outfile,
    logLevel: 'warning',
  });
}

/** `tsx bench/bundle.ts NAME [ARGUMENTS]`: bundles a program and runs it. */
async function main([name = '', ...args]: readonly string[]): Promise<void> {
  const outfile = path.join(root, 'dist/bench', `${name}.cjs`);
  await bundle(name, outfile);
  process.exitCode = spawnSync(process.execPath, [outfile, ...args], { stdio: 'inherit' }).status ?? 1;
}

if (require.main === module) void main(process.argv.slice(2));
