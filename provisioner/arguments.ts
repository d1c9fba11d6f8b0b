import {
  OPERATOR_OPTIONS,
  namespaceList,
  operatorArguments,
  parseDirectory,
  parseFlags,
  parseInteger,
  usage,
  type OperatorArguments,
} from '../operator/arguments';
import type { AnyKind } from '../constructs/kind/kind';

/** The provisioner's parsed command line: every operator's options, and those for kinds that act on machines. */
export interface ProvisionerArguments extends OperatorArguments {
  /** Of Secrets with state and kubeconfigs. Undefined: the pod's namespace, or that of the kubeconfig's context. */
  readonly stateNamespace: string | undefined;
  readonly secretNamespaces: readonly string[];
  readonly configDir: string | undefined;
  readonly keyDir: string | undefined;
  readonly runs: number;
  readonly drainSeconds: number;
  readonly trustOnFirstUse: boolean;
}

/** What `--help` prints. */
export function provisionerUsage(known: readonly AnyKind[], defaults: readonly AnyKind[] = known): string {
  return `${usage(known, defaults)}
Of kinds that act on machines:
  --state-namespace=NAME  Secrets with their state and kubeconfigs (default: the namespace of the pod or of the context)
  --secret-namespaces=A,B further namespaces whose Secrets objects may name (default: none)
  --config-dir=DIR        directory whose files objects may name (default: none)
  --key-dir=DIR           where key files lie while a step runs; best in memory (default: the system's temporary folder)
  --runs=N                how many clusters are worked on at once (default: 4)
  --drain-seconds=N       how long steps under way may take to end after a stop (default: 3600)
  --require-host-keys     refuse machines whose host key is not given, instead of holding them to the first one seen
`;
}

const OPTIONS = {
  ...OPERATOR_OPTIONS,
  'state-namespace': { type: 'string' },
  'secret-namespaces': { type: 'string' },
  'config-dir': { type: 'string' },
  'key-dir': { type: 'string' },
  runs: { type: 'string' },
  'drain-seconds': { type: 'string' },
  'require-host-keys': { type: 'boolean' },
} as const;

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
  const { 'secret-namespaces': secrets, 'state-namespace': state } = values;
  return {
    ...operatorArguments(values, known, defaults),
    stateNamespace: state === undefined ? undefined : namespaceList('state-namespace', state)[0],
    secretNamespaces: secrets === undefined ? [] : namespaceList('secret-namespaces', secrets),
    configDir: parseDirectory('config-dir', values['config-dir']),
    keyDir: parseDirectory('key-dir', values['key-dir']),
    runs: parseInteger('runs', values.runs ?? '4', 1, 1000),
    drainSeconds: parseInteger('drain-seconds', values['drain-seconds'] ?? '3600', 1, 86_400),
    trustOnFirstUse: values['require-host-keys'] !== true,
  };
}
