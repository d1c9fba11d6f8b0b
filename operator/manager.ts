import { setTimeout as delay } from 'node:timers/promises';
import { childTypes, type AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { typeKey } from '../constructs/kube/resource-type';
import { Informers } from './informers';
import { guardWrites, type ApiClient } from './client/api-client';
import { withTimeout } from './process/wait';
import { Controller, type ControllerContext } from './controller/controller';
import { objectKey, type QueueKey } from './controller/queue-keys';
import { WorkQueue } from './workqueue/work-queue';
import type { EffectEngine, ReconcileContext, RunningEffects } from './reconcile/context';
import { EventRecorder } from './events/event-recorder';
import { StartupError } from './process/lifecycle';
import { startHealthServer, type HealthServer } from './process/health-server';
import { processIdentity } from './leader/lease';
import { LeaderElector } from './leader/leader-election';
import { withoutCause, type Logger } from './process/logger';
import type { OperatorMetrics } from './metrics/operator-metrics';
import { serveConversion, type ConversionServer, type WebhookOptions } from './webhook/conversion-server';

/** The leader election's leaseDuration minus its renewDeadline, in milliseconds. */
const LEASE_MARGIN_MS = 5_000;

/**
 * How long a new leader may take to bring its caches up to date, in milliseconds; after that, another replica
 * gets the Lease.
 */
const CATCH_UP_MS = 30_000;

/** The Lease that the replicas of an operator share. */
export interface LeaseOptions {
  readonly name: string;
  readonly namespace: string;
  /** Is given what makes a standby look at the Lease at once. @default nothing does; it looks every two to four seconds */
  readonly onCandidate?: (tryNow: () => void) => void;
  /** See `LeaderElectionOptions`. @default none */
  readonly preferred?: string | undefined;
  /** See `LeaderElectionOptions`. Abort `signal` then. @default nothing: this process goes on leading */
  readonly onAsked?: (name: string) => void;
}

/** Options of `runOperator`. */
export interface OperatorOptions {
  readonly client: ApiClient;
  readonly kinds: readonly AnyKind[];
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
  /** Aborting it starts the orderly stop. */
  readonly signal: AbortSignal;
  /** Called when the Lease is lost: the process must then end. */
  readonly onLost: (error: Error) => void;
  /** @default no election: this process is the only one */
  readonly lease?: LeaseOptions;
  /** Where `/healthz`, `/readyz` and `/metrics` are served; port 0 takes a free one. @default not served */
  readonly health?: { readonly port: number; readonly host?: string };
  /**
   * Where objects are converted between versions, if a kind has several. @default not served: another process
   * must serve it
   */
  readonly webhook?: WebhookOptions;
  /** The namespaces to work in. @default every namespace */
  readonly namespaces?: readonly string[];
  /** How many objects of a kind are reconciled at once. @default 32 */
  readonly concurrency?: number;
  /** How often the caches are compared with the server, in milliseconds. @default 300000 */
  readonly auditMs?: number;
  /**
   * How long running reconciles may take to end, in milliseconds. Together with flushing the events and
   * releasing the Lease, it must fit into the time that the process has to stop. @default 15000
   */
  readonly drainMs?: number;
  /** Executes the effects of kinds; kinds that have effects are rejected without it. @default none */
  readonly effects?: EffectEngine;
  /** Called with the port once the health server listens. */
  readonly onListening?: (port: number) => void;
}

/**
 * Runs the controllers of some kinds until `signal` aborts.
 *
 * Guarantees:
 * - Nothing is written before every cache is synced, except the caches of types that the server does not
 *   have.
 * - With a Lease, nothing is written before this process leads and its caches have all objects of its kinds
 *   as of that moment: the watches of a standby may have been down for a long time.
 * - After `signal` aborts, running work ends, events are flushed and the Lease is released.
 * - Conversions are served from before the caches are filled until the end, by the leader and by standbys.
 *
 * @throws StartupError when there is no kind or two have one name, a port or the webhook's certificate is not
 * available, a kind has effects that `effects` cannot execute, or a new leader's caches stay behind
 */
export async function runOperator(options: OperatorOptions): Promise<void> {
  assertDistinct(options.kinds);
  refuseUnknownPlans(options.kinds, options.effects);
  const { signal, metrics, logger } = options;
  const identity = processIdentity();
  const caches = new Informers(options.kinds, options);
  const elected = deferred();
  const elector = options.lease && makeElector(options, options.lease, identity, elected.resolve);
  const recorder = new EventRecorder({
    client: options.client,
    logger,
    reportingInstance: identity,
    onOutcome: (outcome) => metrics.event(outcome),
  });
  const effects = options.effects?.start(signal);
  const controllers = makeControllers(options, caches, recorder, elector, effects);
  caches.onTypeChange((type) => {
    for (const controller of controllers) controller.onTypeChange(type);
  });
  const servers = await startServers(options, caches);
  let idle = true;
  try {
    const stopped = whenAborted(signal);
    await Promise.race([caches.start(), stopped]);
    if (!signal.aborted) {
      logger.info('every cache is synced');
      // Not earlier: a replica that cannot sync must not keep the Lease from one that can.
      if (elector === undefined) elected.resolve();
      else elector.start();
      if (elector !== undefined) options.lease?.onCandidate?.(() => elector.tryNow());
    }
    await Promise.race([elected.promise, stopped]);
    // Without a Lease no other process has written, and the caches have just been filled.
    if (elector !== undefined && !signal.aborted) await Promise.race([caches.catchUp(signal, CATCH_UP_MS), stopped]);
    if (!signal.aborted) idle = await runControllers(options, caches, controllers);
    if (effects !== undefined && !(await drained(effects, options.effects?.drainMs ?? 0))) {
      logger.error({ runs: effects.size }, 'the steps under way did not end in time');
      idle = false;
    }
  } finally {
    await recorder.flush(2_000);
    recorder.close();
    await elector?.stop({ release: idle });
    await caches.stop();
    await servers.close();
    await options.client.close();
  }
}

function assertDistinct(kinds: readonly AnyKind[]): void {
  if (kinds.length === 0) throw new StartupError('there are no kinds to run: name at least one in `kinds`');
  const names = kinds.map(({ crdName }) => crdName);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return;
  throw new StartupError(
    `two of the kinds are called ${twice}, so they would have one CRD: give one of them another group or plural, ` +
      'or leave it out if it is listed twice',
  );
}

/**
 * Rejects kinds with effects that nothing here executes. Reconciling only their children would report objects
 * as ready whose effects never ran, and delete objects whose effects were never undone.
 */
function refuseUnknownPlans(kinds: readonly AnyKind[], effects: EffectEngine | undefined): void {
  const known = effects?.plans ?? [];
  const needed = kinds.flatMap((kind) =>
    kind.effects.some(({ plan }) => !known.includes(plan)) ? [kind.crdName] : [],
  );
  if (needed.length === 0) return;
  throw new StartupError(
    `${needed.join(', ')}: these kinds act outside the Kubernetes API, which this operator cannot do; ` +
      'give it the plans that they name, with `effects: runPlans({ ... })`, or leave them out of its kinds',
  );
}

function makeElector(
  options: OperatorOptions,
  lease: LeaseOptions,
  identity: string,
  onElected: () => void,
): LeaderElector {
  return new LeaderElector({
    client: options.client,
    leaseName: lease.name,
    namespace: lease.namespace,
    identity,
    logger: options.logger,
    ...(lease.preferred !== undefined && { preferred: lease.preferred }),
    ...(lease.onAsked !== undefined && { onAsked: lease.onAsked }),
    onElected,
    onLost: options.onLost,
    onStatus: (leads) => options.metrics.leader(lease.name, leads),
  });
}

function makeControllers(
  options: OperatorOptions,
  caches: Informers,
  recorder: EventRecorder,
  elector: LeaderElector | undefined,
  effects: RunningEffects | undefined,
): readonly Controller[] {
  const { metrics, logger, concurrency = 32 } = options;
  const client = guardWrites(options.client, {
    assertMayWrite: () => elector?.assertLeader(),
    // Other replicas wait for this margin after our lease ends; a write must end before they lead.
    withinMs: elector && (() => Math.min(30_000, elector.remainingMs() + LEASE_MARGIN_MS)),
    onWrite: (verb, type) => metrics.write(verb, typeKey(type)),
  });
  const assertMayRun = (): void => {
    elector?.assertLeader();
  };
  const crossed = typesWithSeveralWriters(options.kinds);
  return options.kinds.map((kind) => {
    const queue = new WorkQueue<QueueKey>({ metrics: metrics.workqueue(kind.crdName) });
    const log = logger.child({ controller: kind.crdName });
    const record: ReconcileContext['record'] = (subject, { message, ...event }) =>
      recorder.record(subject, { ...event, note: message });
    const wake = (object: KubeObject): void => queue.add(objectKey(object.metadata), 'user');
    const current = (object: KubeObject): KubeObject | undefined => caches.of(kind.type).get(object.metadata)?.object;
    const context: ControllerContext = {
      kind,
      client,
      objects: caches.of(kind.type),
      children: (type) => caches.of(type),
      isMissing: (type) => caches.isMissing(type),
      projection: caches.projection,
      record,
      ...(kind.effects.length > 0 && {
        effects: effects?.of(kind, {
          ...{ client, record, enqueue: wake, getCached: current, assertMayRun },
          onPlanError: ({ metadata }, error) =>
            log.error({ key: objectKey(metadata), err: withoutCause(error) }, 'a plan ended unexpectedly'),
        }),
      }),
      onWrite: ({ type, ref, ...write }) => log.debug({ ...write, type: typeKey(type), ...ref }, 'wrote a child'),
      now: () => `${new Date().toISOString().slice(0, 19)}Z`,
    };
    metrics.observeObjects(kind.crdName, () => context.objects.size);
    return new Controller({
      ...{ context, queue, metrics: metrics.controller(kind.crdName), logger: log, concurrency },
      hasOtherWriter: (type) => crossed.has(typeKey(type)),
    });
  });
}

/** Kinds that are children of other kinds: two controllers write them, and each must see the other's writes. */
function typesWithSeveralWriters(kinds: readonly AnyKind[]): ReadonlySet<string> {
  const owned = new Set(kinds.flatMap(childTypes).map(typeKey));
  return new Set(kinds.map(({ type }) => typeKey(type)).filter((key) => owned.has(key)));
}

/** Starts the webhook first: the API server may need it to answer the lists that fill the caches. */
async function startServers(options: OperatorOptions, caches: Informers): Promise<{ close(): Promise<void> }> {
  const webhook = await serveConversion(options);
  try {
    const health = await serveHealth(options, caches, webhook);
    return {
      close: async () => {
        await health?.close();
        await webhook?.close();
      },
    };
  } catch (error) {
    await webhook?.close();
    throw error;
  }
}

async function serveHealth(
  options: OperatorOptions,
  caches: Informers,
  webhook: ConversionServer | undefined,
): Promise<HealthServer | undefined> {
  if (options.health === undefined) return undefined;
  const { logger, metrics } = options;
  const server = await startHealthServer({
    ...options.health,
    logger,
    metrics: metrics.registry,
    ...(webhook === undefined
      ? { readyz: { caches: () => caches.problem() } }
      : {
          readyz: { caches: () => caches.startProblem(), conversion: () => webhook.problem() },
          readyzNotes: { watches: () => caches.problem() },
        }),
  });
  options.onListening?.(server.port);
  return server;
}

/** @returns whether every reconcile ended in time */
async function runControllers(
  options: OperatorOptions,
  caches: Informers,
  controllers: readonly Controller[],
): Promise<boolean> {
  const { signal, logger, drainMs = 15_000 } = options;
  logger.info({ kinds: controllers.map(({ kind }) => kind.crdName) }, 'reconciling');
  const audits = checkConsistencyPeriodically(caches, signal, options.auditMs ?? 300_000);
  const ends = await Promise.all(controllers.map((controller) => controller.run(signal, drainMs)));
  await audits;
  const abandoned = ends.flatMap((end) => end.abandoned);
  if (abandoned.length > 0) logger.error({ abandoned, drainMs }, 'these reconciles did not end in time');
  return abandoned.length === 0;
}

/** Runs consistency checks until `signal` aborts, one at a time. */
async function checkConsistencyPeriodically(caches: Informers, signal: AbortSignal, everyMs: number): Promise<void> {
  while (!signal.aborted) {
    try {
      await delay(everyMs, undefined, { signal, ref: false });
    } catch {
      // The signal aborted.
      return;
    }
    await caches.checkConsistency(signal);
  }
}

/** @returns whether the running effects ended in time */
function drained(effects: RunningEffects, milliseconds: number): Promise<boolean> {
  return withTimeout(
    effects.waitUntilIdle().then(() => true),
    { milliseconds, onTimeout: () => false },
  );
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

function whenAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = deferred();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', resolve, { once: true });
  return promise;
}
