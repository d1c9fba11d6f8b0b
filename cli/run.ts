import { createRequire } from 'node:module';
import { operatorBundle } from './operator-bundle';

/**
 * `kindred run`: becomes the operator. Its bundle reads its arguments, logs and ends as it does in its image.
 *
 * @param args - the operator's own
 */
export function run(args: readonly string[]): void {
  const bundle = operatorBundle();
  process.argv = [process.argv[0] ?? process.execPath, bundle, ...args];
  createRequire(bundle)(bundle);
}
