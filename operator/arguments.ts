import { errorMessage } from '../constructs/kube/errors';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import type { AnyKind } from '../constructs/kind/kind';
import { nameProblem } from '../constructs/kube/names';
import type { LogLevel } from './process/logger';

/** The operator's parsed command line. */
export interface OperatorArguments {
  readonly kinds: readonly AnyKind[];
  /** Undefined: every namespace. */
  readonly namespaces: readonly string[] | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly lease:
    | { readonly name: string; readonly namespace: string | undefined; readonly preferred: string | undefined }
    | undefined;
  readonly port: number;
  readonly host: string | undefined;
  /** Undefined: conversions are not served here. */
  readonly webhook: { readonly port: number; readonly certDir: string } | undefined;
  readonly logLevel: LogLevel;
  readonly concurrency: number;
  /** How often the caches are compared with the server. */
  readonly auditSeconds: number;
}

/** The command line is not valid. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const LOG_LEVELS: readonly string[] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** What `--help` prints. */
export function usage(known: readonly AnyKind[], defaults: readonly AnyKind[] = known): string {
  const names = (kinds: readonly AnyKind[]): string => kinds.map(({ crdName }) => crdName).join(', ');
  const further = known.filter((kind) => !defaults.includes(kind));
  return `Reconciles the objects of its kinds.

  --kinds=A,B             which kinds, as <plural>.<group> (default: all of ${names(defaults)}${
    further.length === 0 ? '' : `; further ones: ${names(further)}`
  })
  --namespaces=A,B        work in these namespaces only (default: in all)
  --kubeconfig=FILE       default: KUBECONFIG, the pod's ServiceAccount, ~/.kube/config
  --context=NAME          default: the kubeconfig's current context
  --leader-elect          one of several replicas works, the others wait (default: this is the only one)
  --lease-name=NAME       default: kindred-operator
  --lease-namespace=NAME  default: the namespace of the pod or of the kubeconfig's context
  --lease-preferred=NAME  ask whoever holds the Lease to give it up; it is kept for operators with this name
  --metrics-port=PORT     of /healthz, /readyz and /metrics; 0 takes a free one (default: 8080)
  --metrics-host=ADDRESS  default: every address
  --webhook-cert-dir=DIR  tls.crt and tls.key of /convert, for kinds of several versions (default: not served)
  --webhook-port=PORT     of /convert; 0 takes a free one (default: 9443)
  --log-level=LEVEL       ${LOG_LEVELS.join(', ')} (default: info)
  --concurrency=N         objects of a kind reconciled at once, half of them of a backlog (default: 32)
  --audit-seconds=N       how often what is known is compared with the API server (default: 300)
`;
}

/** What `--help` prints besides, of an operator whose kinds have effects. */
export const EFFECT_USAGE = `
Of kinds that act outside the Kubernetes API:
  --state-namespace=NAME  Secrets with the state of cluster-scoped objects (default: the namespace of the pod or of the context)
  --secret-namespaces=A,B further namespaces whose Secrets objects may name (default: none)
  --config-dir=DIR        directory whose files objects may name (default: none)
  --key-dir=DIR           where key files lie while a step runs; best in memory (default: the system's temporary folder)
  --runs=N                how many runs are under way at once (default: 4)
  --drain-seconds=N       how long steps under way may take to end after a stop (default: 3600)
`;

/** The options of every operator, as `parseArgs` takes them. */
export const OPERATOR_OPTIONS = {
  kinds: { type: 'string' },
  namespaces: { type: 'string' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  'leader-elect': { type: 'boolean' },
  'lease-name': { type: 'string' },
  'lease-namespace': { type: 'string' },
  'lease-preferred': { type: 'string' },
  'metrics-port': { type: 'string' },
  'metrics-host': { type: 'string' },
  'webhook-cert-dir': { type: 'string' },
  'webhook-port': { type: 'string' },
  'log-level': { type: 'string' },
  concurrency: { type: 'string' },
  'audit-seconds': { type: 'string' },
  help: { type: 'boolean' },
} as const;

/** The options of an operator whose kinds have effects, as `parseArgs` takes them. */
export const EFFECT_OPTIONS = {
  'state-namespace': { type: 'string' },
  'secret-namespaces': { type: 'string' },
  'config-dir': { type: 'string' },
  'key-dir': { type: 'string' },
  runs: { type: 'string' },
  'drain-seconds': { type: 'string' },
} as const;

/** Whether an argument of an operator's Deployment names a directory or a port of its pod, and is of no use to a process elsewhere. */
export function isPodArgument(arg: string): boolean {
  return /^--(key-dir|config-dir|webhook-cert-dir|webhook-port)=/.test(arg);
}

/** The parsed {@link EFFECT_OPTIONS}. */
export interface EffectArguments {
  /** Of Secrets with the state of cluster-scoped objects. Undefined: the pod's namespace, or that of the kubeconfig's context. */
  readonly stateNamespace: string | undefined;
  readonly secretNamespaces: readonly string[];
  readonly configDir: string | undefined;
  readonly keyDir: string | undefined;
  readonly runs: number;
  readonly drainSeconds: number;
}

/**
 * Parses the operator's command line.
 *
 * @param known - the kinds that may be named
 * @param defaults - those that run when none is named
 * @returns the arguments, or `help` for `--help`
 * @throws UsageError saying which argument is wrong and what it may be
 */
export function parseArguments(
  argv: readonly string[],
  known: readonly AnyKind[],
  defaults: readonly AnyKind[] = known,
): OperatorArguments | 'help' {
  const values = parseFlags(argv, OPERATOR_OPTIONS);
  return values.help === true ? 'help' : operatorArguments(values, known, defaults);
}

/** Checks the values of {@link OPERATOR_OPTIONS}. @throws UsageError */
export function operatorArguments(
  values: ReturnType<typeof parseFlags<typeof OPERATOR_OPTIONS>>,
  known: readonly AnyKind[],
  defaults: readonly AnyKind[],
): OperatorArguments {
  const logLevel = values['log-level'] ?? 'info';
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new UsageError(`--log-level=${logLevel}: it may be one of ${LOG_LEVELS.join(', ')}`);
  }
  const elect = values['leader-elect'] === true;
  if (!elect && (values['lease-name'] ?? values['lease-namespace'] ?? values['lease-preferred']) !== undefined) {
    throw new UsageError(
      '--lease-name, --lease-namespace and --lease-preferred go with --leader-elect; add it, or leave them out',
    );
  }
  return {
    kinds: values.kinds === undefined ? defaults : chosenKinds(values.kinds, known),
    namespaces: values.namespaces === undefined ? undefined : namespaceList('namespaces', values.namespaces),
    kubeconfig: values.kubeconfig,
    context: values.context,
    lease: elect
      ? {
          name: values['lease-name'] ?? 'kindred-operator',
          namespace: values['lease-namespace'],
          preferred: values['lease-preferred'],
        }
      : undefined,
    port: parseInteger('metrics-port', values['metrics-port'] ?? '8080', 0, 65535),
    host: values['metrics-host'],
    webhook: webhookOf(
      values['webhook-cert-dir'],
      parseInteger('webhook-port', values['webhook-port'] ?? '9443', 0, 65535),
    ),
    logLevel: logLevel as LogLevel,
    concurrency: parseInteger('concurrency', values.concurrency ?? '32', 1, 1000),
    auditSeconds: parseInteger('audit-seconds', values['audit-seconds'] ?? '300', 1, 86_400),
  };
}

/** Checks the values of {@link EFFECT_OPTIONS}. @throws UsageError */
export function effectArguments(values: ReturnType<typeof parseFlags<typeof EFFECT_OPTIONS>>): EffectArguments {
  const { 'secret-namespaces': secrets, 'state-namespace': state } = values;
  return {
    stateNamespace: state === undefined ? undefined : namespaceList('state-namespace', state)[0],
    secretNamespaces: secrets === undefined ? [] : namespaceList('secret-namespaces', secrets),
    configDir: parseDirectory('config-dir', values['config-dir']),
    keyDir: parseDirectory('key-dir', values['key-dir']),
    runs: parseInteger('runs', values.runs ?? '4', 1, 1000),
    drainSeconds: parseInteger('drain-seconds', values['drain-seconds'] ?? '3600', 1, 86_400),
  };
}

function webhookOf(certDir: string | undefined, port: number): OperatorArguments['webhook'] {
  const directory = parseDirectory('webhook-cert-dir', certDir);
  return directory === undefined ? undefined : { certDir: directory, port };
}

/** The values of options on a command line. @throws UsageError if an option is unknown or has no value */
export function parseFlags<O extends NonNullable<ParseArgsConfig['options']>>(
  argv: readonly string[],
  options: O,
): ReturnType<typeof parseArgs<{ options: O; strict: true; allowPositionals: false }>>['values'] {
  try {
    return parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(errorMessage(error), { cause: error });
  }
}

function chosenKinds(value: string, known: readonly AnyKind[]): readonly AnyKind[] {
  const names = new Set(value.split(',').map((name) => name.trim()));
  return [...names].map((name) => {
    const kind = known.find(({ crdName }) => crdName === name);
    if (kind !== undefined) return kind;
    throw new UsageError(
      `--kinds: "${name}" is not known; the kinds are ${known.map(({ crdName }) => crdName).join(', ')}`,
    );
  });
}

/** The namespaces in an option's value, separated by commas, without duplicates. @throws UsageError */
function namespaceList(option: string, value: string): readonly string[] {
  const namespaces = [...new Set(value.split(',').map((name) => name.trim()))];
  for (const namespace of namespaces) {
    const problem = nameProblem(namespace, { format: 'dns-label' });
    if (problem !== undefined) throw new UsageError(`--${option}: ${problem}`);
  }
  return namespaces;
}

/** An option's value as a whole number. @throws UsageError if it is not one from `min` to `max` */
function parseInteger(name: string, value: string, min: number, max: number): number {
  const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : NaN;
  if (number >= min && number <= max) return number;
  throw new UsageError(`--${name}=${value}: it must be a whole number from ${String(min)} to ${String(max)}`);
}

/** The value of an option that names a directory, if it is given. @throws UsageError if it is empty */
function parseDirectory(name: string, value: string | undefined): string | undefined {
  if (value === '') throw new UsageError(`--${name}=: it must name a directory`);
  return value;
}
