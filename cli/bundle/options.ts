import type { BuildOptions } from 'esbuild';
import { absent } from './absent';
import { barrels } from './barrels';

/** esbuild's options for every bundle that is a program for Node.js. */
export const nodeBundle = {
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  minifySyntax: true,
  sourcemap: 'linked',
  // Only lines are looked up in the maps, and an image has them too.
  sourcesContent: false,
  legalComments: 'linked',
} satisfies BuildOptions;

/**
 * The first statement of an operator's bundle. It makes V8 compile WebAssembly with its baseline compiler only.
 *
 * undici parses HTTP with llhttp, which is WebAssembly. V8 would optimize it a second after the start; meanwhile the
 * process grows by half of its size for some 100 ms, which the memory limit would have to allow for. llhttp parses only
 * the heads of messages, not their bodies. NODE_OPTIONS does not accept this flag, hence it is set here. The banner comes
 * first in the bundle, so it must contain the directive.
 */
const startFlags = "'use strict';require('node:v8').setFlagsFromString('--liftoff-only');";

/** Options of {@link operatorOptions}. */
interface OperatorBundleOptions {
  /** Kindred's folder, from which the packages are found that the operator library uses. */
  readonly kindred: string;
  /** Packages that are bundled whole, since code that is not Kindred's uses them. @default none */
  readonly complete?: ReadonlySet<string>;
  /**
   * Fail when a module that should be left out is imported nowhere. For Kindred's own bundles, so that the list stays
   * right.
   */
  readonly strict: boolean;
}

/**
 * esbuild's options for the bundle of an operator, besides `nodeBundle`. It is small, because a bundle's text and all
 * that it sets up at its start stay in memory as long as it runs.
 *
 * Identifiers are not minified, so that the names of errors and the stacks in the logs are those of the sources. So
 * `keepNames`, which would cost 3 MB, is not needed.
 */
export function operatorOptions({ kindred, complete = new Set(), strict }: OperatorBundleOptions): BuildOptions {
  return {
    minifyWhitespace: true,
    minifySyntax: true,
    // An uncaught error prints the line that it came from.
    lineLimit: 160,
    banner: { js: startFlags },
    plugins: [absent({ kindred, complete, strict }), barrels(kindred, complete)],
  };
}
