import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import type { Plugin } from 'esbuild';

const namespace = 'barrel';

/**
 * Splits packages whose entry loads everything that they have: only what is imported from them by name is bundled.
 * `require` calls within the packages are left as they are.
 *
 * Guarantees: an import of a name that this does not know fails the build.
 *
 * @param kindred - Kindred's folder, from which the packages are found
 * @param complete - packages that are left as they are
 */
export function barrels(kindred: string, complete: ReadonlySet<string>): Plugin {
  const require = createRequire(join(kindred, 'package.json'));
  const sources: Readonly<Record<string, () => string>> = {
    // Of undici only what operator/ uses: its entry also has fetch, WebSocket, caches, mocks and a global dispatcher.
    undici: () => `export { default as Pool } from ${quoted(require.resolve('undici/lib/dispatcher/pool.js'))};`,
    'cdk8s-plus-27': () => cdk8sPlus(require),
  };
  // Other packages may import any name of undici.
  const isOwn = (importer: string): boolean => importer.startsWith(join(kindred, 'operator') + sep);
  return {
    name: 'barrels',
    setup(build) {
      build.onResolve({ filter: /^(undici|cdk8s-plus-27)$/ }, ({ path, kind, importer }) =>
        kind === 'import-statement' && !complete.has(path) && (path !== 'undici' || isOwn(importer))
          ? { path, namespace, sideEffects: false }
          : undefined,
      );
      build.onResolve({ filter: /./, namespace }, ({ path }) => ({ path, sideEffects: false }));
      build.onLoad({ filter: /./, namespace }, ({ path }) => ({ contents: sources[path]?.() ?? '' }));
    },
  };
}

/** The entry of cdk8s-plus as a list of names and their files, so that names that are not imported can be left out. */
function cdk8sPlus(require: NodeJS.Require): string {
  const entry = require.resolve('cdk8s-plus-27');
  const text = readFileSync(entry, 'utf8');
  const file = (path: string): string => require.resolve(join(dirname(entry), path));
  const stars = [...text.matchAll(/^__exportStar\(require\("(.+)"\), exports\);$/gm)].map(([, path = '']) =>
    file(path),
  );
  const namespaces = [...text.matchAll(/^exports\.(\w+) = require\("(.+)"\);$/gm)];
  return [
    ...stars.map((path) => `export { ${Object.keys(require(path) as object).join(', ')} } from ${quoted(path)};`),
    ...namespaces.map(([, name = '', path = '']) => `export * as ${name} from ${quoted(file(path))};`),
  ].join('\n');
}

function quoted(path: string): string {
  return JSON.stringify(path);
}
