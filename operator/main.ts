import { hasEffects, type AnyKind } from '../constructs/kind/kind';
import {
  EFFECT_OPTIONS,
  EFFECT_USAGE,
  OPERATOR_OPTIONS,
  UsageError,
  effectArguments,
  operatorArguments,
  parseArguments,
  parseFlags,
  usage,
  type OperatorArguments,
} from './arguments';
import { createApiClient } from './client/http-api-client';
import { KubeconfigError, loadClusterAccess } from './client/kubeconfig';
import { runOperator } from './manager';
import { OperatorMetrics } from './metrics/operator-metrics';
import { optionsFromArguments, type EffectEngineFactory, type GivenEffects } from './operator-options';
import { StartupError, VERSION, installShutdown, setV8Flags } from './process/lifecycle';
import { createLogger } from './process/logger';
import { reportSourceLines } from './process/program-stacks';

/** How long an operator may take to stop, in milliseconds; below the kubelet's 30 s. */
const ORDERLY_STOP_MS = 25_000;

/** Options of `main`. */
export interface MainOptions {
  /** The kinds that it runs, unless `--kinds` names some of them. At least one; no two with one plural and group. */
  readonly kinds: readonly AnyKind[];
  /**
   * Executes the effects of the kinds: `runPlans({...})`. The command line then has options for them as well.
   * @default none: kinds that have effects are refused
   */
  readonly effects?: EffectEngineFactory;
  /** What the program is called in its messages on stderr. @default 'operator' */
  readonly name?: string;
  /** The command line, without the program's name. @default process.argv.slice(2) */
  readonly args?: readonly string[];
}

/**
 * An operator's whole program. It reads the command line, which is the one that `OperatorDeployment` and `Platform`
 * write into the Deployment (`--help` lists the options), reaches the cluster by KUBECONFIG, the pod's
 * ServiceAccount or ~/.kube/config, serves `/healthz`, `/readyz` and `/metrics`, and reconciles the kinds until
 * SIGTERM or SIGINT, which it takes for an orderly stop.
 *
 * Errors: it never throws. What is wrong is written to stderr, and the exit code is 2 for a command line that is not
 * valid, 1 for everything else; 0 after an orderly stop.
 */
export function main({ kinds, effects, name = 'operator', args = process.argv.slice(2) }: MainOptions): void {
  runMain(name, async () => {
    // Without effects too: what the Deployment of such kinds says must not hide that the program lacks them.
    if (effects === undefined && !hasEffects(kinds)) {
      const parsed = parseArguments(args, kinds);
      if (parsed === 'help') process.stdout.write(usage(kinds));
      else await runProgram(parsed);
      return;
    }
    const values = parseFlags(args, { ...OPERATOR_OPTIONS, ...EFFECT_OPTIONS });
    if (values.help === true) process.stdout.write(usage(kinds) + EFFECT_USAGE);
    else
      await runProgram(
        operatorArguments(values, kinds, kinds),
        effects && { args: effectArguments(values), engine: effects },
      );
  });
}

/**
 * Runs an operator with the settings of its command line until it is stopped: logging, signals, access to the
 * cluster, metrics, controllers.
 *
 * @throws KubeconfigError, StartupError for problems that the user can fix
 */
export async function runProgram(args: OperatorArguments, effects?: GivenEffects): Promise<void> {
  const drains = effects !== undefined && hasEffects(args.kinds);
  const deadlineMs = ORDERLY_STOP_MS + (drains ? effects.args.drainSeconds * 1000 : 0);
  const logger = createLogger({ level: args.logLevel });
  const shutdown = installShutdown({ logger, deadlineMs });
  const access = loadClusterAccess({ path: args.kubeconfig, context: args.context });
  const metrics = new OperatorMetrics();
  const host = new URL(access.server).host;
  const client = createApiClient(access, {
    userAgent: `kindred/${VERSION}`,
    onResponse: ({ code, method }) => metrics.restRequest(code, method, host),
  });
  const namespace = access.namespace ?? 'default';
  // Whoever ends the leader may tell a standby so. From the start, since this signal would end a process that does not handle it.
  let tryForLease = (): void => undefined;
  process.on('SIGUSR2', () => tryForLease());
  await runOperator({
    ...optionsFromArguments(args, effects, { client, logger, namespace }),
    metrics,
    signal: shutdown.signal,
    lease: args.lease && {
      name: args.lease.name,
      namespace: args.lease.namespace ?? namespace,
      preferred: args.lease.preferred,
      onCandidate: (tryNow) => (tryForLease = tryNow),
      // A restart, which the kubelet does, makes it a candidate again.
      onAsked: (name) => shutdown.request(`the Lease is asked for, for ${name}`),
    },
    health: { port: args.port, host: args.host },
    webhook: args.webhook && {
      ...args.webhook,
      onListening: (port) => logger.info({ port }, 'serving /convert'),
    },
    onListening: (port) => logger.info({ port }, 'serving /healthz, /readyz and /metrics'),
    onLost: (error) => {
      // Another replica leads now; the exit code makes the kubelet start this one afresh.
      process.exitCode = 1;
      shutdown.request('the Lease was lost', error);
    },
  });
  shutdown.dispose();
  logger.info('stopped');
}

/**
 * Runs a program as this process. An error becomes a message on stderr and an exit code: 2 for a command line
 * that is not valid, 1 for everything else.
 */
export function runMain(name: string, program: () => Promise<void>): void {
  setV8Flags();
  reportSourceLines();
  program().catch((error: unknown) => {
    const expected = [UsageError, KubeconfigError, StartupError].some((known) => error instanceof known);
    process.stderr.write(`${name}: ${describe(error, expected)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  });
}

function describe(error: unknown, expected: boolean): string {
  if (!(error instanceof Error)) return String(error);
  return expected ? error.message : (error.stack ?? error.message);
}
