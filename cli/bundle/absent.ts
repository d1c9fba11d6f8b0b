import type { Plugin } from 'esbuild';
import { absentModules, type AbsentModule } from './absent-modules';

const namespace = 'absent';

/** What {@link absent} leaves out. */
interface AbsentOptions {
  /** Kindred's folder. */
  readonly kindred: string;
  /** Packages of which nothing is left out. */
  readonly complete: ReadonlySet<string>;
  /** Fail the build when a module of the list is imported nowhere. */
  readonly strict: boolean;
}

/**
 * Leaves modules out of a bundle. Each is replaced by a stub whose exports throw when they are used; the error says which
 * module is missing and why.
 *
 * Guarantees: nothing is left out silently. An export that the stub lacks fails the build.
 */
export function absent({ kindred, complete, strict }: AbsentOptions): Plugin {
  const modules = absentModules(kindred).filter(({ of }) => !complete.has(of));
  return {
    name: 'absent',
    setup(build) {
      const met = new Set<number>();
      // An import of an export that the stub lacks would be undefined at run time.
      build.initialOptions.logOverride = { ...build.initialOptions.logOverride, 'import-is-undefined': 'error' };
      build.onResolve({ filter: anyOf(modules.map(({ module }) => module)) }, ({ path, importer }) => {
        const file = importer.replaceAll('\\', '/');
        const index = modules.findIndex((entry) => entry.module === path && entry.importer.test(file));
        if (index < 0) return undefined;
        met.add(index);
        return { path: `${path} (${index})`, namespace, pluginData: index, sideEffects: false };
      });
      build.onLoad({ filter: /.*/, namespace }, ({ pluginData }) => {
        const module = modules[pluginData as number];
        return module && { contents: stub(module) };
      });
      build.onEnd(() => ({
        errors: modules
          .filter((_, index) => strict && !met.has(index))
          .map(({ module, importer }) => ({
            text: `cli/bundle/absent-modules.ts: no import of "${module}" by ${importer} is left; take the entry out, or correct it`,
          })),
      }));
    },
  };
}

/** A module whose exports throw the error when they are called, constructed, or one of their properties is read. */
function stub({ module, exports, why }: AbsentModule): string {
  return [
    'const absent = (name) => {',
    `  const fail = () => { throw new Error(name + ${JSON.stringify(` of "${module}" is not in this bundle: ${why}`)}); };`,
    '  return new Proxy(function () {}, { apply: fail, construct: fail, get: fail });',
    '};',
    ...exports.map((name) => `export const ${name} = /* @__PURE__ */ absent(${JSON.stringify(name)});`),
  ].join('\n');
}

function anyOf(names: readonly string[]): RegExp {
  return new RegExp(`^(${names.map((name) => name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|')})$`);
}
