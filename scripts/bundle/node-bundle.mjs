/** esbuild's options of every bundle that runs on Node by itself. */
export const nodeBundle = {
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  minifySyntax: true,
  sourcemap: 'linked',
};
