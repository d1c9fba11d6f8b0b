/** esbuild's options for every bundle that is a program for Node. */
export const nodeBundle = {
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  minifySyntax: true,
  sourcemap: 'linked',
};
