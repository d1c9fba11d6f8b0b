import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, OwnerReference } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import type { DeleteOptions, ObjectRef } from '../../operator/client/api-client';
import type { ObjectCache } from '../../operator/informer/object-cache';
import { managedFieldsOf, trackUpdate, withManagedFields, type FieldManager } from './managed-fields';
import { conflict, notFound, apiError, jsonCopy } from './requests';

/** An object with the parts that the store treats differently. */
export type Body = KubeObject & { readonly status?: unknown; readonly spec?: unknown };

/**
 * When the watches report a change: after the response to the request, before it, or when the test calls
 * `deliverEvents`.
 */
type EventDelivery = 'after' | 'before' | 'held';

type Propagation = NonNullable<DeleteOptions['propagation']>;

/** The objects of a cluster, with changes by controllers and users, and a garbage collector. */
export class MemoryStore {
  eventDelivery: EventDelivery = 'after';
  /** Admission: may change an object before it is stored. */
  admit: (object: KubeObject) => void = () => undefined;
  private readonly store = new Map<string, StoredObject>();
  private readonly caches = new Map<string, ObjectCache>();
  private pendingEvents: (() => void)[] = [];
  private revision = 100;
  private uids = 0;

  /** Fills a cache and keeps it up to date from now on, as a watch does. */
  attachCache(cache: ObjectCache): void {
    this.caches.set(typeKey(cache.type), cache);
    const entries = this.all(cache.type).map((object) => cache.project(jsonCopy(object)));
    cache.replace(entries, this.version);
  }

  /** Delivers all pending events to the caches. */
  deliverEvents(): void {
    for (const tell of this.pendingEvents.splice(0)) tell();
  }

  /** The current object, without a request. */
  peek(type: ResourceType, ref: ObjectRef): KubeObject | undefined {
    return this.find(type, ref);
  }

  /** All objects of a type, without a request. */
  all(type: ResourceType): readonly KubeObject[] {
    return [...this.store.values()]
      .filter((stored) => typeKey(stored.type) === typeKey(type))
      .map(({ object }) => object);
  }

  /** The resourceVersion of the last change. */
  get version(): string {
    return String(this.revision);
  }

  /** A controller's write to the status. */
  setStatus(type: ResourceType, ref: ObjectRef, status: object): void {
    const live = this.getOrThrow(type, ref);
    const writer: FieldManager = { manager: 'kube-controller-manager', operation: 'Update', subresource: 'status' };
    this.commit(type, live, trackUpdate(live, { ...live, status }, writer));
  }

  /** An autoscaler's write to the scale subresource. */
  scale(type: ResourceType, ref: ObjectRef, replicas: number): void {
    const live = this.getOrThrow(type, ref);
    const writer: FieldManager = { manager: 'kube-controller-manager', operation: 'Update', subresource: 'scale' };
    const spec = { ...(live.spec as object), replicas };
    this.commit(type, live, trackUpdate(live, { ...live, spec }, writer));
  }

  /** Changes an object as another client would by PUT, without a request. */
  edit(
    type: ResourceType,
    ref: ObjectRef,
    change: (object: KubeObject) => KubeObject,
    manager = 'kubectl',
  ): KubeObject {
    return this.replace(type, ref, change(jsonCopy(this.getOrThrow(type, ref))), { manager, operation: 'Update' });
  }

  /** Deletes an object as another client would, without a request. */
  remove(type: ResourceType, ref: ObjectRef, propagation: Propagation = 'Background'): void {
    this.beginDeletion(type, this.getOrThrow(type, ref), propagation);
  }

  /** Runs the garbage collector until it finds nothing more to do. */
  collectGarbage(): void {
    for (let again = true; again;) {
      again = [...this.store.values()].some(
        ({ type, object }) => this.store.has(addressOf(type, object.metadata)) && this.collectOne(type, object),
      );
    }
  }

  private collectOne(type: ResourceType, object: KubeObject): boolean {
    const { uid, finalizers = [], deletionTimestamp, ownerReferences = [] } = object.metadata;
    const dependents = [...this.store.values()].filter(({ object: other }) =>
      owners(other).some((owner) => owner.uid === uid),
    );
    if (deletionTimestamp !== undefined && finalizers.includes('orphan')) {
      for (const { type: of, object: other } of dependents) {
        const left = owners(other).filter((owner) => owner.uid !== uid);
        this.commit(of, other, { ...other, metadata: { ...other.metadata, ownerReferences: left } });
      }
      return this.dropFinalizer(type, object, 'orphan');
    }
    if (deletionTimestamp !== undefined && finalizers.includes('foregroundDeletion')) {
      const waiting = dependents.filter(({ object: other }) => other.metadata.deletionTimestamp === undefined);
      for (const { type: of, object: other } of waiting) this.beginDeletion(of, other, 'Foreground');
      return waiting.length > 0 || (dependents.length === 0 && this.dropFinalizer(type, object, 'foregroundDeletion'));
    }
    const living = new Set([...this.store.values()].map(({ object: other }) => other.metadata.uid));
    if (deletionTimestamp !== undefined || ownerReferences.length === 0) return false;
    if (ownerReferences.some((owner) => living.has(owner.uid))) return false;
    this.beginDeletion(type, object, 'Background');
    return true;
  }

  private dropFinalizer(type: ResourceType, object: KubeObject, name: string): boolean {
    const finalizers = object.metadata.finalizers?.filter((other) => other !== name);
    this.commit(type, object, { ...object, metadata: { ...object.metadata, finalizers } });
    return true;
  }

  protected insert(type: ResourceType, body: Body, writer: FieldManager): KubeObject {
    const said: Body = { ...asUpdated(body, writer), status: undefined };
    Reflect.deleteProperty(said, 'status');
    const object: KubeObject = {
      ...said,
      metadata: {
        ...said.metadata,
        uid: `uid-${String(++this.uids)}`,
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...(said.spec === undefined ? {} : { generation: 1 }),
      },
    };
    return this.commit(type, undefined, trackUpdate(undefined, object, writer));
  }

  protected replace(type: ResourceType, ref: ObjectRef, body: Body, writer: FieldManager): KubeObject {
    const live: Body = this.getOrThrow(type, ref);
    const { resourceVersion, uid } = body.metadata;
    if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion) {
      throw conflict('the object has been modified; please apply your changes to the latest version and try again');
    }
    if (uid !== undefined && uid !== live.metadata.uid)
      throw apiError(422, 'Invalid', 'metadata.uid: Invalid value: field is immutable');
    const status = writer.subresource === 'status' ? body.status : live.status;
    const next = {
      ...asUpdated(body, writer),
      metadata: { ...live.metadata, ...body.metadata },
      ...(status === undefined ? {} : { status }),
    };
    return this.commit(type, live, trackUpdate(live, next, writer));
  }

  protected beginDeletion(type: ResourceType, live: KubeObject, propagation: Propagation): void {
    const { metadata } = live;
    const gc = { Background: [], Foreground: ['foregroundDeletion'], Orphan: ['orphan'] }[propagation];
    const finalizers = [...new Set([...(metadata.finalizers ?? []), ...gc])];
    const deletionTimestamp = metadata.deletionTimestamp ?? '2026-01-02T00:00:00Z';
    this.commit(type, live, { ...live, metadata: { ...metadata, deletionTimestamp, finalizers } });
  }

  protected commit(type: ResourceType, before: Body | undefined, after: Body): KubeObject {
    const next = this.admitted(before, after);
    if (
      before !== undefined &&
      isDeepStrictEqual(withManagedFields(next, managedFieldsOf(before)), before) &&
      sameEntries(next, before)
    ) {
      return before;
    }
    const object = { ...next, metadata: { ...next.metadata, resourceVersion: String(++this.revision) } };
    const { deletionTimestamp, finalizers = [] } = object.metadata;
    const gone = deletionTimestamp !== undefined && finalizers.length === 0;
    const address = addressOf(type, object.metadata);
    if (gone) this.store.delete(address);
    else this.store.set(address, { type, object });
    this.queueEvent(type, object, gone);
    return object;
  }

  /** An object as it would be stored, with its defaults, after admission; at the version of the one before. */
  protected admitted(before: Body | undefined, after: Body): Body {
    const next = withStringData(jsonCopy(after));
    setDefaults(next);
    this.admit(next);
    const { generation } = next.metadata;
    if (generation === undefined) return next;
    const bump = before !== undefined && !isDeepStrictEqual(before.spec, next.spec) ? 1 : 0;
    return { ...next, metadata: { ...next.metadata, generation: (before?.metadata.generation ?? 1) + bump } };
  }

  private queueEvent(type: ResourceType, object: KubeObject, gone: boolean): void {
    const copy = jsonCopy(object);
    this.pendingEvents.push(() => {
      const cache = this.caches.get(typeKey(type));
      if (gone) cache?.applyDeletion(copy);
      else cache?.applyChange(copy);
    });
    if (this.eventDelivery === 'before') this.deliverEvents();
    else if (this.eventDelivery === 'after') setImmediate(() => this.eventDelivery === 'after' && this.deliverEvents());
  }

  protected find(type: ResourceType, ref: ObjectRef): KubeObject | undefined {
    return this.store.get(addressOf(type, ref))?.object;
  }

  protected getOrThrow(type: ResourceType, ref: ObjectRef): KubeObject {
    const live = this.find(type, ref);
    if (live === undefined) throw notFound(type, ref);
    return live;
  }
}

interface StoredObject {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

function addressOf(type: ResourceType, { namespace, name }: ObjectRef): string {
  return `${typeKey(type)}/${namespace ?? ''}/${name}`;
}

function owners(object: KubeObject): readonly OwnerReference[] {
  return object.metadata.ownerReferences ?? [];
}

function sameEntries(a: KubeObject, b: KubeObject): boolean {
  const plain = (object: KubeObject): unknown =>
    [...managedFieldsOf(object)].map((entry) => JSON.stringify(entry)).sort();
  return isDeepStrictEqual(plain(a), plain(b));
}

/**
 * An object as the server tracks it: it compares what an update leads to, and so tracks `data` where `stringData`
 * was sent. Of an apply it tracks what was sent, and never `data`.
 */
function asUpdated(body: Body, { operation }: FieldManager): Body {
  const copy = jsonCopy(body);
  return operation === 'Update' ? withStringData(copy) : copy;
}

/**
 * A Secret with its `stringData` merged into `data`. A real server does this when it decodes a Secret, and never
 * stores `stringData`, so that a comparison with it finds nothing, and no apply can remove what it set.
 */
function withStringData<T extends KubeObject>(object: T): T {
  const { stringData, ...secret } = object;
  if (object.apiVersion !== 'v1' || object.kind !== 'Secret' || stringData === undefined) return object;
  const data = { ...(object.data as Readonly<Record<string, string>> | undefined) };
  for (const [key, text] of Object.entries(stringData as Readonly<Record<string, string>>)) {
    data[key] = Buffer.from(text).toString('base64');
  }
  return { ...secret, ...(Object.keys(data).length === 0 ? {} : { data }) } as unknown as T;
}

interface Container {
  imagePullPolicy?: string;
  ports?: { protocol?: string }[];
}

interface WithPods {
  spec: {
    replicas?: number;
    strategy?: object;
    template: { spec: { restartPolicy?: string; containers: Container[]; initContainers?: Container[] } };
  };
}

interface ServiceLike {
  spec: { type?: string; clusterIP?: string; ports?: { protocol?: string }[] };
}

/** Sets the defaults of the API server, as far as they matter to writers. Changes the object. */
function setDefaults(object: KubeObject): void {
  if (object.kind === 'Deployment') {
    const { spec } = object as unknown as WithPods;
    spec.replicas ??= 1;
    spec.strategy ??= { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } };
    spec.template.spec.restartPolicy ??= 'Always';
    for (const container of [...spec.template.spec.containers, ...(spec.template.spec.initContainers ?? [])]) {
      container.imagePullPolicy ??= 'IfNotPresent';
      for (const port of container.ports ?? []) port.protocol ??= 'TCP';
    }
  } else if (object.kind === 'Service') {
    const { spec } = object as unknown as ServiceLike;
    spec.type ??= 'ClusterIP';
    spec.clusterIP ??= '10.0.0.1';
    for (const port of spec.ports ?? []) port.protocol ??= 'TCP';
  }
}
