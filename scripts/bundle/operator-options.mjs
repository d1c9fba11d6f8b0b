import { absent } from './absent.mjs';
import { barrels } from './barrels.mjs';
import { startFlags } from './start-flags.mjs';

/**
 * esbuild's options for the operator, besides `nodeBundle`. Its bundle is small, because a bundle's
 * text and all that it sets up at its start stay in memory as long as it runs.
 *
 * Identifiers are not minified, so that the names of errors and the stacks in the logs are those of the
 * sources. So `keepNames`, which would cost 3 MB, is not needed.
 *
 * @type {import('esbuild').BuildOptions}
 */
export const operatorOptions = {
  minifyWhitespace: true,
  minifySyntax: true,
  // An uncaught error prints the line that it came from.
  lineLimit: 160,
  banner: { js: startFlags },
  plugins: [absent(), barrels()],
};
