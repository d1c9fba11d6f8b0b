import { existsSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { provisionerKinds } from '../constructs/kinds';
import { CliError } from './errors';

/** The programs that are bundled with the command. */
export type Program = 'operator' | 'provisioner';

/**
 * The path of a program's bundle: beside this bundle, or in the checkout's dist/.
 *
 * @throws CliError when it has not been built
 */
export function operatorBundle(program: Program = 'operator'): string {
  const candidates = [path.join(__dirname, `${program}.cjs`), path.join(__dirname, '..', 'dist', `${program}.cjs`)];
  const found = candidates.find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new CliError(`the ${program} is not built: there is no ${candidates[0] ?? ''}. Run: npm run build`);
}

/**
 * The program for a command line: the provisioner if `--kinds` names one of its kinds, else the operator. The
 * program itself reports what is wrong with the command line.
 */
export function programFor(args: readonly string[]): Program {
  const { values } = parseArgs({ args: [...args], options: { kinds: { type: 'string' } }, strict: false });
  const names = typeof values.kinds === 'string' ? values.kinds.split(',').map((name) => name.trim()) : [];
  return provisionerKinds.some(({ crdName }) => names.includes(crdName)) ? 'provisioner' : 'operator';
}
