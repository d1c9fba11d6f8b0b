import { absent } from './absent.mjs';
import { barrels } from './barrels.mjs';
import { startFlags } from './start-flags.mjs';

/**
 * How the operator is bundled besides what all bundles share: small, since the text of a bundle and all that it sets up at its start
 * stay in memory for as long as it runs.
 *
 * Identifiers are not minified: the names of errors and the stacks in the logs stay as they are written. `keepNames` is not needed
 * then; it would cost 3 MB.
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
