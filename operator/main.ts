import { allKinds, kinds } from '../constructs/kinds';
import { UsageError, parseArguments, usage, type OperatorArguments } from './arguments';
import { createApiClient } from './client/http-api-client';
import { KubeconfigError, loadClusterAccess } from './client/kubeconfig';
import { effectEngine } from './effects/effect-engine';
import { runOperator } from './manager';
import { needsProvisioner, provisionerEffects } from '../provisioner/provisioner';
import { StartupError, VERSION, installShutdown, setV8Flags } from './process/lifecycle';
import { createLogger } from './process/logger';
import { OperatorMetrics } from './metrics/operator-metrics';

/** How long an operator may take to stop, in milliseconds; below the kubelet's 30 s. */
const ORDERLY_STOP_MS = 25_000;

async function main(): Promise<void> {
  setV8Flags();
  const parsed = parseArguments(process.argv.slice(2), allKinds, kinds);
  if (parsed === 'help') {
    process.stdout.write(usage(allKinds, kinds));
    return;
  }
  await run(parsed);
}

async function run(args: OperatorArguments): Promise<void> {
  const logger = createLogger({ level: args.logLevel });
  const { provisioner } = args;
  const provisions = needsProvisioner(args.kinds);
  // A step on a machine is finished; what follows it has the time that every operator has.
  const deadlineMs = ORDERLY_STOP_MS + (provisions ? provisioner.drainSeconds * 1000 : 0);
  const shutdown = installShutdown({ logger, deadlineMs });
  const access = loadClusterAccess({ path: args.kubeconfig, context: args.context });
  const metrics = new OperatorMetrics();
  const host = new URL(access.server).host;
  const client = createApiClient(access, {
    userAgent: `kindred/${VERSION}`,
    onResponse: ({ code, method }) => metrics.restRequest(code, method, host),
  });
  const namespace = provisioner.stateNamespace ?? access.namespace ?? 'default';
  await runOperator({
    client,
    ...(provisions ? { effects: effectEngine(provisionerEffects({ client, logger, ...provisioner, namespace })) } : {}),
    kinds: args.kinds,
    namespaces: args.namespaces,
    logger,
    metrics,
    signal: shutdown.signal,
    concurrency: args.concurrency,
    auditMs: args.auditSeconds * 1000,
    lease: args.lease && { name: args.lease.name, namespace: args.lease.namespace ?? access.namespace ?? 'default' },
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

main().catch((error: unknown) => {
  const expected = [UsageError, KubeconfigError, StartupError].some((known) => error instanceof known);
  process.stderr.write(`kindred-operator: ${describe(error, expected)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});

function describe(error: unknown, expected: boolean): string {
  if (!(error instanceof Error)) return String(error);
  return expected ? error.message : (error.stack ?? error.message);
}
