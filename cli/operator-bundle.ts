import { existsSync } from 'node:fs';
import path from 'node:path';
import { CliError } from './errors';

/**
 * The path of the operator's bundle: beside this bundle, or in dist/ of the checkout.
 *
 * @throws CliError when it has not been built
 */
export function operatorBundle(): string {
  const candidates = [path.join(__dirname, 'operator.cjs'), path.join(__dirname, '..', 'dist', 'operator.cjs')];
  const found = candidates.find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new CliError(`the operator is not built: there is no ${candidates[0] ?? ''}. Run: npm run build`);
}
