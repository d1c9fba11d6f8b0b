import { existsSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/** The packages that Kindred and its users share. A process may have one copy of them only, since both work with their objects. */
export const SHARED_PACKAGES = ['cdk8s', 'cdk8s-plus-27', 'constructs', 'zod'] as const;

/** What {@link packagesOutside} leaves outside. */
interface PackagesOutsideOptions {
  /** Kindred's folder. */
  readonly kindred: string;
  /** Specifiers of modules that are bundled, whatever they lead to. */
  readonly bundled: readonly string[];
  /** Receives what may be loaded before the project's own code runs. */
  readonly preloaded: Set<string>;
}

/**
 * Leaves packages outside, which are required from the file that imports them, so that Kindred's sources have the packages that Kindred
 * has. Bundled are what is no package but linked into node_modules, such as a workspace's, and of the project's packages those
 * that are ES modules: `require` does not give what their importers expect.
 */
export function packagesOutside({ kindred, bundled, preloaded }: PackagesOutsideOptions): Plugin {
  return {
    name: 'packages-outside',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, async ({ path: module, importer, resolveDir, kind, pluginData }) => {
        const isOther =
          kind === 'entry-point' || isBuiltin(module) || path.isAbsolute(module) || bundled.includes(module);
        if (isOther || pluginData === asked) return undefined;
        if (importer.startsWith(kindred + path.sep)) {
          const key = path.join(kindred, module);
          const file = ownFiles.get(key) ?? requiredFile(module, kindred);
          if (file === undefined) return undefined;
          ownFiles.set(key, file);
          preloaded.add(file);
          return { path: file, external: true };
        }
        const found = await build.resolve(module, { importer, resolveDir, kind, pluginData: asked });
        if (found.errors.length > 0 || !isInPackage(found.path)) return undefined;
        const file = requiredFile(module, resolveDir);
        if (file === undefined || !isCommonJs(file)) return undefined;
        if (SHARED_PACKAGES.some((name) => module === name || module.startsWith(`${name}/`))) preloaded.add(file);
        return { path: file, external: true };
      });
    },
  };
}

/** What Kindred's sources require, by its folder and the module: it stays the same from one version of a project to the next. */
const ownFiles = new Map<string, string>();

/** Marks the questions of `packagesOutside` to esbuild. */
const asked = Symbol('asked');

/** The real path of a module as `require` finds it; undefined: it finds none. */
function requiredFile(module: string, folder: string): string | undefined {
  try {
    return createRequire(path.join(folder, 'importer.js')).resolve(module);
  } catch {
    // It is for `import` alone.
    return undefined;
  }
}

const isInPackage = (file: string): boolean => file.includes(`${path.sep}node_modules${path.sep}`);

/** Whether Node.js takes a file for what `require` is made for; not so TypeScript. */
function isCommonJs(file: string): boolean {
  if (!file.endsWith('.js')) return /\.(cjs|json|node)$/.test(file);
  for (let folder = path.dirname(file); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json');
    if (existsSync(manifest))
      return (JSON.parse(readFileSync(manifest, 'utf8')) as { type?: string }).type !== 'module';
  }
  return true;
}
