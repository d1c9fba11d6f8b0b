import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { FieldProjection, childProjection } from '../../../operator/informer/field-projection';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { UID_INDEX } from '../../../operator/informer/indexer';
import type {
  ChildWriteEvent,
  ReconcileResult,
  ObjectEvent,
  ReconcileContext,
} from '../../../operator/reconcile/context';
import { FunctionLimits } from '../../../operator/reconcile/function-limits';
import { ObjectRenderer } from '../../../operator/reconcile/render-object';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { reconcileShared, type SharedResult } from '../../../operator/reconcile/reconcile-shared';
import { DeletedCompletions } from '../../../operator/reconcile/completions';
import type { SharedState } from '../../../operator/reconcile/shared-keys';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

export const NAMESPACE = 'default';

/** Everything that reconciles of one kind need, against the memory. Its caches follow at once, unless the server's delivery says otherwise. */
export class Harness {
  readonly server: MemoryApiServer;
  readonly events: (ObjectEvent & { readonly regarding: string })[] = [];
  readonly written: ChildWriteEvent[] = [];
  readonly objects: ObjectCache;
  readonly context: ReconcileContext;
  private readonly completions = new DeletedCompletions();
  /** What `shared.get` answers: shared children are applied, unless a test says otherwise. */
  sharedState: (id: string) => SharedState | undefined = () => ({ state: 'applied' });
  seconds = 0;
  /** The types that the server does not have, by their keys. */
  readonly missing = new Set<string>();
  private readonly caches: ReadonlyMap<string, ObjectCache>;

  /** @param server - one that holds objects already; `fillCaches` is to be called then, once what follows the caches is made */
  constructor(
    readonly kind: AnyKind,
    server?: MemoryApiServer,
  ) {
    this.server = server ?? new MemoryApiServer();
    this.objects = new ObjectCache(kind.type, {
      ownWritesKeepSpec: true,
      indexes: { [UID_INDEX]: ({ object }) => [object.metadata.uid ?? ''] },
    });
    const projection = new FieldProjection();
    const project = childProjection([kind], projection);
    this.caches = new Map(childTypes(kind).map((type) => [typeKey(type), new ObjectCache(type, { project })]));
    for (const cache of this.caches.values()) {
      cache.addObserver((event) => projection.onCacheEvent(event));
      cache.addObserver(({ type, object: { object } }) => {
        if (type === 'deleted') this.completions.recordDeletion(kind, object);
      });
    }
    this.server.eventDelivery = 'before';
    if (server === undefined) this.fillCaches();
    const limits = new FunctionLimits(kind);
    this.context = {
      kind,
      client: this.server,
      objects: this.objects,
      children: (type) => this.cacheOf(type),
      isMissing: (type) => this.missing.has(typeKey(type)),
      shared: { get: (id) => this.sharedState(id) },
      driftBackoff: new DriftBackoff(),
      completions: this.completions,
      limits,
      renderer: new ObjectRenderer(kind, limits),
      projection,
      record: ({ metadata: { name } }, event) => this.events.push({ regarding: name, ...event }),
      onWrite: (write) => this.written.push(write),
      now: () => `2026-01-01T00:00:${String(this.seconds).padStart(2, '0')}Z`,
    };
  }

  /** The caches list what the server holds, and follow it from now on. */
  fillCaches(): void {
    for (const cache of [this.objects, ...this.caches.values()]) this.server.attachCache(cache);
  }

  cacheOf(type: ResourceType): ObjectCache {
    const cache = this.caches.get(typeKey(type));
    if (cache === undefined) throw new TypeError(`no cache of ${typeKey(type)}`);
    return cache;
  }

  /** A user creates an object of the kind. */
  async add(name: string, spec: object | undefined, metadata: Partial<ObjectMeta> = {}): Promise<KubeObject> {
    const { apiVersion, kind } = this.kind;
    const body = { apiVersion, kind, metadata: { name, namespace: NAMESPACE, ...metadata }, ...(spec && { spec }) };
    const created = await this.server.create(this.kind.type, body, { fieldManager: 'kubectl' });
    this.server.takeRequests();
    return created;
  }

  /** A user changes the spec. */
  respec(name: string, change: object): void {
    this.server.edit(this.kind.type, ref(name), (object) => ({
      ...object,
      spec: { ...(object.spec as object), ...change },
    }));
  }

  /** A user sets an annotation. */
  annotate(name: string, annotations: Record<string, string>): void {
    this.server.edit(this.kind.type, ref(name), (object) => ({
      ...object,
      metadata: { ...object.metadata, annotations },
    }));
  }

  /** One reconcile, and the writes that it made. */
  async reconcile(name: string): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.server.takeRequests();
    const next = await reconcileObject(this.context, ref(name));
    return { next, writes: this.server.writes };
  }

  /** One reconcile of a shared key by all objects in the cache, and the writes that it made. */
  async reconcileShared(key: string): Promise<{ readonly result: SharedResult; readonly writes: readonly string[] }> {
    this.server.takeRequests();
    const objects = this.objects.list().map(({ object }) => object);
    const target = { group: 'service', namespace: NAMESPACE, key, objects };
    const result = await reconcileShared(this.context, target);
    return { result, writes: this.server.writes };
  }

  /** What stands of the kind. */
  object(name: string): KubeObject & { readonly status: Status } {
    return this.live(this.kind.type, name) as KubeObject & { readonly status: Status };
  }

  /** What stands. */
  live(type: ResourceType, name: string): KubeObject {
    const live = this.server.peek(type, ref(name));
    if (live === undefined) throw new Error(`there is no ${type.kind} ${name}`);
    return live;
  }

  /** Conditions as `Ready=False ErrResourceExists`. */
  conditions(name: string): readonly string[] {
    return this.object(name).status.conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  }

  /** The message of `Ready`. */
  message(name: string): string {
    return this.object(name).status.conditions.find(({ type }) => type === 'Ready')?.message ?? '';
  }
}

interface Status {
  readonly observedGeneration?: number;
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
    readonly lastTransitionTime: string;
    readonly observedGeneration?: number;
  }[];
  readonly [field: string]: unknown;
}

/** An object in the namespace of all tests. */
export function ref(name: string): { readonly name: string; readonly namespace: string } {
  return { name, namespace: NAMESPACE };
}

/** The status of a Deployment with a number of ready pods. */
export function rolledOut(replicas: number, observedGeneration = 1): object {
  return {
    observedGeneration,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
    conditions: [
      { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'It is available.' },
      { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: 'It has progressed.' },
    ],
  };
}
