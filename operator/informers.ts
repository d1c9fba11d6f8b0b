import { errorMessage } from '../constructs/kube/errors';
import { setTimeout as delay } from 'node:timers/promises';
import { childTypes, type AnyKind } from '../constructs/kind/kind';
import { typeKey, type ResourceType } from '../constructs/kube/resource-type';
import { compareResourceVersions, type ApiClient } from './client/api-client';
import { ApiError, TransportError } from './client/errors';
import { MultiNamespaceCache, type CacheView } from './informer/cache-view';
import type { ConsistencyCheckResult } from './informer/consistency-check';
import { UID_INDEX } from './informer/indexer';
import { ObjectCache, type ObjectCacheOptions } from './informer/object-cache';
import { FieldProjection, childProjection } from './informer/field-projection';
import { Reflector } from './informer/reflector';
import { UndecodableObjectError, isTypeMissing } from './informer/reflector-errors';
import type { AuditOutcome, OperatorMetrics } from './metrics/operator-metrics';
import { StartupError } from './process/lifecycle';
import type { Logger } from './process/logger';
import { withTimeout } from './process/wait';

/** How many of the objects whose events were missed are named in the log. */
const MISSED_NAMED = 10;

/**
 * A first list younger than this, in milliseconds, counts as up to date if its watch has not failed. So the
 * first replica, which is elected as soon as it starts, does not list everything twice.
 */
const JUST_LISTED_MS = 10_000;

/** Options of `Informers`. */
interface InformersOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
  /** Watch only these; cluster-scoped types are watched as a whole anyway. @default every namespace */
  readonly namespaces?: readonly string[];
}

/**
 * All caches of an operator and the reflectors that fill them: one per resource type, or one per type and
 * namespace.
 */
export class Informers {
  private readonly views = new Map<string, CacheView>();
  private readonly reflectors: ReflectorEntry[] = [];
  /** The types that the server does not have, by their keys. */
  private readonly missing = new Set<string>();
  private readonly typeHandlers: ((type: ResourceType) => void)[] = [];
  /** The reflectors of the kinds themselves. */
  private readonly ofKinds: readonly ReflectorEntry[];
  /** Which fields of the children the caches keep; reconciles register what they render. */
  readonly projection = new FieldProjection();

  constructor(
    kinds: readonly AnyKind[],
    private readonly options: InformersOptions,
  ) {
    for (const kind of kinds) {
      const indexes: ObjectCacheOptions['indexes'] = { [UID_INDEX]: ({ object }) => [object.metadata.uid ?? ''] };
      // The operator writes statuses and finalizers, never a spec: another spec in a response is somebody
      // else's change.
      this.add(kind.type, { indexes, ownWritesKeepSpec: true }, kind.versions.length > 0);
    }
    this.ofKinds = [...this.reflectors];
    const project = childProjection(kinds, this.projection);
    for (const type of kinds.flatMap(childTypes)) {
      if (!this.views.has(typeKey(type))) this.add(type, { project });
    }
  }

  /** The cache of a type. @throws TypeError when no kind of this operator has the type */
  of(type: ResourceType): CacheView {
    const view = this.views.get(typeKey(type));
    if (view === undefined) throw new TypeError(`no kind of this operator owns ${typeKey(type)}`);
    return view;
  }

  /**
   * Whether the server lacks a type, so that no object of it exists; false before the server's first
   * response.
   */
  isMissing(type: ResourceType): boolean {
    return this.missing.has(typeKey(type));
  }

  /**
   * Calls `handler` when a type turns out to be missing, and when it has been installed and its objects are
   * in the cache.
   */
  onTypeChange(handler: (type: ResourceType) => void): void {
    this.typeHandlers.push(handler);
  }

  /**
   * Starts all reflectors; resolves when every first list is in its cache, except those of types that the
   * server does not have.
   */
  async start(): Promise<void> {
    for (const { reflector } of this.reflectors) reflector.start();
    await Promise.all(this.reflectors.map(({ settled }) => settled));
  }

  /**
   * Resolves when the caches of the kinds have everything that the server had when this was called, so that
   * nothing is written for a spec that the previous leader has already seen changed. The caches of the
   * children need no such check: every write to a child carries the version that was read.
   *
   * @throws StartupError when that takes longer than `withinMs`; ReflectorStopped; the signal's reason
   */
  async catchUp(signal: AbortSignal, withinMs: number): Promise<void> {
    const late = (): never => {
      const why = this.problem() ?? 'the server does not answer in time';
      const message = `became leader, but the caches may be behind what the leader before has seen: ${why}`;
      throw new StartupError(`${message}; another replica may do better`);
    };
    const whole = Promise.all(this.ofKinds.map((reflected) => this.catchUpOne(reflected, signal)));
    await withTimeout(whole, { milliseconds: withinMs, onTimeout: late });
  }

  private async catchUpOne(reflected: ReflectorEntry, signal: AbortSignal): Promise<void> {
    const { type, namespace, reflector, listedAt } = reflected;
    // A type that is installed later is listed then.
    if (reflector.state().missing) return;
    if (reflector.state().watching && performance.now() - listedAt < JUST_LISTED_MS) return;
    const { client, logger } = this.options;
    let listed: boolean;
    try {
      listed = await catchUp({ client, type, namespace, reflector, signal });
    } catch (error) {
      if (isTypeMissing(error)) return;
      throw error;
    }
    if (listed) logger.info({ type: typeKey(type), namespace }, 'listed anew, to be as far as the leader before');
  }

  /**
   * Why the caches cannot be relied upon, or undefined when they can. A missing type is no reason: the
   * objects that need it report it.
   */
  problem(): string | undefined {
    return this.problemOf(this.reflectors);
  }

  /**
   * Why a replica that converts is not ready, or undefined when it is: its caches have not been filled. The webhook's Service leads
   * to the replicas that are ready, so a watch that ends later must not take the conversions away from everybody else.
   *
   * A kind of several versions counts until its first list has failed, and again when the server refuses it (401, 403). Any other
   * failure may be that of the conversions themselves, which need this replica where there is no other.
   */
  startProblem(): string | undefined {
    return this.problemOf(
      this.reflectors.filter(({ reflector, awaitsConversions, lastFailure }) => {
        if (reflector.state().synced) return false;
        return !awaitsConversions || lastFailure === undefined || isRefusal(lastFailure);
      }),
    );
  }

  private problemOf(reflectors: readonly ReflectorEntry[]): string | undefined {
    const bad = reflectors.flatMap(({ type, namespace, reflector }) => {
      const { synced, watching, missing, lastError } = reflector.state();
      if (missing || (synced && watching)) return [];
      const why = lastError === undefined ? '' : `: ${errorMessage(lastError.error)}`;
      const where = namespace === undefined ? '' : ` in ${namespace}`;
      return [`${typeKey(type)}${where} ${synced ? 'is not being watched' : 'has not been listed yet'}${why}`];
    });
    return bad.length === 0 ? undefined : bad.join('; ');
  }

  /**
   * Compares every cache with the server, repairs and counts what a watch missed, and counts the results.
   * Each cache detects by itself that its etcd was restored: the types need not all be in one etcd.
   */
  async checkConsistency(signal: AbortSignal): Promise<void> {
    const { logger, metrics } = this.options;
    for (const { type, reflector } of this.reflectors) {
      if (signal.aborted) return;
      const { missing, synced } = reflector.state();
      if (missing || !synced) continue;
      try {
        const result = await reflector.checkConsistency({ signal });
        const { missed, objects, rollback } = result;
        metrics.audited(typeKey(type), outcomeOf(result));
        if (rollback !== undefined)
          logger.warn(
            { type: typeKey(type), ...rollback },
            "the API server's versions were set back, as by an etcd that was restored; the cache has been listed anew",
          );
        if (missed === 0) continue;
        metrics.missedEvent(typeKey(type), missed);
        const some = objects.slice(0, MISSED_NAMED);
        logger.error({ type: typeKey(type), missed, some }, 'the watch missed events; the cache has been listed anew');
      } catch (error) {
        if (isAborted(signal)) return;
        metrics.audited(typeKey(type), 'failed');
        logger.warn({ type: typeKey(type), err: error }, 'the cache could not be audited; the next audit will');
      }
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.reflectors.map(({ reflector }) => reflector.stop()));
  }

  private add(type: ResourceType, options: ObjectCacheOptions, awaitsConversions = false): void {
    const { namespaces } = this.options;
    const create = (namespace?: string): ObjectCache =>
      this.createInformer({ type, namespace, awaitsConversions }, options);
    if (namespaces === undefined || type.scope === 'Cluster') {
      this.views.set(typeKey(type), create());
      return;
    }
    const caches = namespaces.map((namespace) => [namespace, create(namespace)] as const);
    this.views.set(typeKey(type), new MultiNamespaceCache(type, new Map(caches)));
  }

  private createInformer(
    watched: Pick<ReflectorEntry, 'type' | 'namespace' | 'awaitsConversions'>,
    options: ObjectCacheOptions,
  ): ObjectCache {
    const { type, namespace } = watched;
    const { client, metrics } = this.options;
    metrics.observeAudits(typeKey(type));
    const cache = new ObjectCache(type, options);
    cache.addObserver((event) => this.projection.onCacheEvent(event));
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const onError = (error: unknown): void => {
      if (!(error instanceof UndecodableObjectError)) {
        reflected.listedAt = -Infinity;
        reflected.lastFailure = error;
      }
      // A missing type has been reported already, and the reflector tries again every few seconds.
      if (!isTypeMissing(error) || !reflector.state().missing) this.report(type, error);
    };
    const onMissing = (): void => {
      this.followType(type);
      settle();
    };
    const reflector = new Reflector({ client, type, cache, namespace, onError, onMissing });
    const reflected: ReflectorEntry = { ...watched, reflector, listedAt: -Infinity, lastFailure: undefined, settled };
    reflector.synced().then(
      () => {
        reflected.listedAt = performance.now();
        settle();
      },
      // It was stopped before it synced; nothing waits for it any more.
      () => undefined,
    );
    this.reflectors.push(reflected);
    return cache;
  }

  /**
   * Called when a reflector finds out whether the server has its type; a type that is watched in several
   * namespaces has several reflectors.
   */
  private followType(type: ResourceType): void {
    const key = typeKey(type);
    const isMissing = this.reflectors.some((one) => typeKey(one.type) === key && one.reflector.state().missing);
    if (isMissing === this.missing.has(key)) return;
    if (isMissing) this.missing.add(key);
    else {
      this.missing.delete(key);
      this.options.logger.info({ type: key }, 'the type has been installed, and its objects have been listed');
    }
    for (const handler of this.typeHandlers) handler(type);
  }

  private report(type: ResourceType, error: unknown): void {
    const { logger } = this.options;
    const fields = { type: typeKey(type), reason: errorMessage(error) };
    if (error instanceof UndecodableObjectError) logger.error(fields, 'an object cannot be read and is left out');
    else logger.warn({ ...fields, hint: hint(error) }, 'watching failed; trying again');
  }
}

interface ReflectorEntry {
  readonly type: ResourceType;
  readonly namespace: string | undefined;
  /** Whether the server may have to convert its objects before it can list them. */
  readonly awaitsConversions: boolean;
  readonly reflector: Reflector;
  /**
   * When the first list was put into the cache, on the monotonic clock; -Infinity before that and after a
   * failure.
   */
  listedAt: number;
  /** The last failure to list or watch; unlike the reflector's, it stays when the next attempt has only begun. */
  lastFailure: unknown;
  /** Resolves when the first list is in the cache, or the server turns out not to have the type. */
  readonly settled: Promise<void>;
}

/** Options of `catchUp`: a cache that may be behind the server. */
interface CatchUpOptions {
  readonly client: Pick<ApiClient, 'list'>;
  readonly type: ResourceType;
  /** @default all namespaces */
  readonly namespace?: string | undefined;
  readonly reflector: Pick<Reflector, 'state' | 'relist'>;
  readonly signal: AbortSignal;
  /** How long an open watch may take to reach the server's version, in milliseconds. @default 1000 */
  readonly waitMs?: number;
}

const POLL_MS = 25;

/**
 * Resolves when a cache has everything that the server had when this was called. A list of one object shows
 * the server's version. A watch that receives events reaches that version by itself. A watch without events
 * would learn it only from a bookmark, which comes once a minute, so all objects are listed again instead.
 *
 * @returns whether all objects were listed
 * @throws ReflectorStopped; the signal's reason
 * @testonly
 */
export async function catchUp(options: CatchUpOptions): Promise<boolean> {
  if (await reachesServer(options)) return false;
  options.signal.throwIfAborted();
  await options.reflector.relist();
  return true;
}

async function reachesServer(options: CatchUpOptions): Promise<boolean> {
  const { reflector, signal, waitMs = 1_000 } = options;
  const before = reflector.state().resourceVersion;
  const version = await serverVersion(options);
  // A server that is behind the cache was restored to an older state, and the cache's version means nothing
  // to it.
  if (version === undefined || compareResourceVersions(before, version) > 0) return false;
  const deadline = performance.now() + waitMs;
  for (;;) {
    const { resourceVersion, watching } = reflector.state();
    if (compareResourceVersions(resourceVersion, version) >= 0) return true;
    if (!watching || performance.now() >= deadline) return false;
    await delay(POLL_MS, undefined, { signal });
  }
}

/**
 * The server's current version, by a consistent read; undefined when the request fails: the list that follows
 * reports why.
 */
async function serverVersion({ client, type, namespace, signal }: CatchUpOptions): Promise<string | undefined> {
  const where = namespace === undefined ? {} : { namespace };
  try {
    const page = await client.list(type, { ...where, limit: 1, metadataOnly: true, signal, timeoutMs: 5_000 });
    return page.resourceVersion;
  } catch (error) {
    if (error instanceof ApiError || error instanceof TransportError) return undefined;
    throw error;
  }
}

function outcomeOf({ missed, conclusive, rollback }: ConsistencyCheckResult): AuditOutcome {
  if (missed > 0) return 'missed';
  return conclusive && rollback === undefined ? 'agrees' : 'inconclusive';
}

/** A function, because the compiler treats a property that it has read once as constant. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Whether the server answers, and does not permit what is asked. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 401 || error.code === 403);
}

/** What a person can do about a failing watch. */
function hint(error: unknown): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error.code === 404)
    return 'the type is not installed: apply its CRD. Only objects with children of it wait; no restart is needed';
  if (error.code === 403)
    return "the operator's ServiceAccount lacks this permission; install the RBAC of the platform";
  if (error.code === 401) return 'the credentials have expired or are not valid for this cluster';
  return undefined;
}
