import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/**
 * Leaves `constructs/` out of a bundle, and takes it from the built library instead. So the command and the kinds that it
 * loads have one copy: what `kindred/constructs` is to a project.
 *
 * @param kindred - Kindred's folder
 * @param library - how the bundle requires the built library: the path of the folder that holds `constructs/`
 */
export function libraryConstructs(kindred: string, library: string): Plugin {
  const sources = path.join(kindred, 'constructs') + path.sep;
  return {
    name: 'library-constructs',
    setup(build) {
      build.onResolve({ filter: /^\.\.?(\/|$)/ }, ({ path: specifier, resolveDir, kind }) => {
        const target = path.join(resolveDir, specifier).replace(/\.ts$/, '');
        if (kind === 'entry-point' || !`${target}${path.sep}`.startsWith(sources)) return undefined;
        const file = existsSync(`${target}.ts`) ? target : path.join(target, 'index');
        return { path: `${library}/${path.relative(kindred, file).replaceAll(path.sep, '/')}.js`, external: true };
      });
    },
  };
}
