// Bundles the programs: the operator and the provisioner (one file each, for their images) and the command line, with the
// part of the library that it takes its constructs from.
// `tsx scripts/build.ts [DIRECTORY] [METAFILE]`: into that directory, `dist` by default. METAFILE receives esbuild's
// metafile of the two images' bundles.
import { build } from 'esbuild';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { absent } from '../cli/bundle/absent';
import { libraryConstructs } from '../cli/bundle/library';
import { nodeBundle, operatorOptions } from '../cli/bundle/options';
import { SHARED_PACKAGES } from '../cli/bundle/packages-outside';
import { writeAtomically } from '../cli/bundle/write';
import { version } from '../package.json';

const root = path.join(__dirname, '..');

async function main(outdir = path.join(root, 'dist'), metafile?: string): Promise<void> {
  const common = {
    ...nodeBundle,
    absWorkingDir: root,
    outdir: path.resolve(outdir),
    logLevel: 'warning',
    write: false,
    metafile: true,
  } as const;
  const define = { 'process.env.KINDRED_VERSION': JSON.stringify(version) };
  const [programs, cli, library] = await Promise.all([
    build({
      ...{ ...operatorOptions({ kindred: root, strict: true }), ...common, define },
      entryPoints: { operator: 'operator/kindred.ts', provisioner: 'provisioner/main.ts' },
    }),
    build({
      ...common,
      entryPoints: { cli: 'cli/main.ts' },
      // Keeps bundled scripts from running: only the entry point is the main module.
      banner: { js: '#!/usr/bin/env node' },
      define: { ...define, 'require.main': 'undefined' },
      external: [...SHARED_PACKAGES, 'esbuild'],
      minifyWhitespace: true,
      lineLimit: 160,
      plugins: [libraryConstructs(root, './library'), absent({ kindred: root, complete: new Set(), strict: false })],
    }),
    build({
      ...{ absWorkingDir: root, outdir: path.join(common.outdir, 'library/constructs'), logLevel: 'warning' },
      entryPoints: ['constructs/**/*.ts'],
      ...{ platform: 'node', target: 'node20.19', format: 'cjs', sourcemap: 'inline', write: false, metafile: true },
    }),
  ]);
  for (const { outputFiles } of [programs, cli, library]) {
    for (const { path: file, contents } of outputFiles) await writeAtomically(file, contents);
  }
  if (metafile !== undefined) await writeFile(metafile, JSON.stringify(programs.metafile));
  // Of thousands of files in node_modules the lockfile stands for all.
  const inputs = [programs, cli, library].flatMap(({ metafile: { inputs: all } }) =>
    Object.keys(all).filter((file) => !/(^|[/:])node_modules\/|^(barrel|absent):/.test(file)),
  );
  await writeAtomically(
    path.join(common.outdir, 'inputs.json'),
    JSON.stringify([...new Set(inputs), 'scripts/build.ts', 'package-lock.json']),
  );
}

main(...process.argv.slice(2)).catch((error: unknown) => {
  // esbuild has printed what is wrong with the sources.
  if (!(error instanceof Error && 'errors' in error)) process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
