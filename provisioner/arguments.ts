import {
  EFFECT_OPTIONS,
  EFFECT_USAGE,
  OPERATOR_OPTIONS,
  effectArguments,
  operatorArguments,
  parseFlags,
  usage,
  type EffectArguments,
  type OperatorArguments,
} from '../operator/arguments';
import type { AnyKind } from '../constructs/kind/kind';

/** The provisioner's parsed command line: that of every operator whose kinds have effects, and its own. */
export interface ProvisionerArguments extends OperatorArguments, EffectArguments {
  readonly trustOnFirstUse: boolean;
}

/** What `--help` prints. */
export function provisionerUsage(known: readonly AnyKind[], defaults: readonly AnyKind[] = known): string {
  return `${usage(known, defaults)}${EFFECT_USAGE}
Of machines:
  --require-host-keys     refuse machines whose host key is not given, instead of holding them to the first one seen
`;
}

const OPTIONS = { ...OPERATOR_OPTIONS, ...EFFECT_OPTIONS, 'require-host-keys': { type: 'boolean' } } as const;

/**
 * Parses the provisioner's command line.
 *
 * @param known - the kinds that may be named
 * @param defaults - those that run when none is named
 * @returns the arguments, or `help` for `--help`
 * @throws UsageError saying which argument is wrong and what it may be
 */
export function parseProvisionerArguments(
  argv: readonly string[],
  known: readonly AnyKind[],
  defaults: readonly AnyKind[] = known,
): ProvisionerArguments | 'help' {
  const values = parseFlags(argv, OPTIONS);
  if (values.help === true) return 'help';
  return {
    ...operatorArguments(values, known, defaults),
    ...effectArguments(values),
    trustOnFirstUse: values['require-host-keys'] !== true,
  };
}
