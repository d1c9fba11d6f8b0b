import type { RenderedChild } from '../../../constructs/kind/render';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import { writeChild, type ChildOutcome } from '../../../operator/apply/write-child';
import { refOf, type ApiClient, type ApplyOptions } from '../../../operator/client/api-client';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { FieldProjection, childProjection } from '../../../operator/informer/field-projection';

/** What was asked of the server: `create`, `apply`, `dry run`, `patch`, `get`. */
export type Asked = string;

/** Writes one child as the operator does, with a cache of its own, and says what it asked of the server. */
export class ChildWriter {
  asked: Asked[] = [];
  /** The body of the last create or apply. */
  sent: KubeObject | undefined;
  private readonly client: ApiClient;
  private projection = new FieldProjection();
  private cache: ObjectCache;

  constructor(
    private readonly server: ApiClient,
    public child: RenderedChild,
  ) {
    this.client = this.recording(server);
    this.cache = this.emptyCache();
  }

  /** Starts anew, as a restarted operator does: with the objects of a list, and nothing known of what was rendered. */
  restart(live: KubeObject): void {
    this.restartEmpty();
    this.cache.replace([this.cache.project(live)], live.metadata.resourceVersion ?? '');
  }

  /** An event of the watch. */
  observe(live: KubeObject): void {
    this.cache.applyChange(live);
  }

  /** Starts anew, with no object. */
  restartEmpty(): void {
    this.projection = new FieldProjection();
    this.cache = this.emptyCache();
  }

  /** One reconcile of the child. */
  async write(): Promise<ChildOutcome> {
    this.asked = [];
    return writeChild({
      client: this.client,
      cache: this.cache,
      child: this.child,
      envelope: { ownerReferences: [OWNER], ownerUid: OWNER.uid },
      claim: () => 'ours',
      beforeAddingOwner: async () => Promise.resolve(),
      driftBackoff: new DriftBackoff(),
      ownerKey: OWNER.uid,
      projection: this.projection,
    });
  }

  /** Whether the last reconcile wrote. */
  get wrote(): boolean {
    return this.asked.some((request) => request !== 'dry run' && request !== 'get');
  }

  /** The server's own verdict: what a forced apply of the rendering makes of the live object. */
  async dryRun(): Promise<KubeObject> {
    if (this.sent === undefined) throw new Error('nothing was sent yet');
    const { uid: _, resourceVersion: __, ...metadata } = this.sent.metadata;
    return this.server.apply(this.child.type, { ...this.sent, metadata }, { fieldManager: 'kindred', dryRun: true });
  }

  async get(): Promise<KubeObject | undefined> {
    return this.server.get(this.child.type, refOf(this.child.manifest));
  }

  private emptyCache(): ObjectCache {
    return new ObjectCache(this.child.type, { project: childProjection([], this.projection) });
  }

  private recording(server: ApiClient): ApiClient {
    return new Proxy(server, {
      get: (target, name: keyof ApiClient) => {
        const method = target[name] as (...args: unknown[]) => unknown;
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          const isDryRun = name === 'apply' && (args[2] as ApplyOptions).dryRun === true;
          this.asked.push(isDryRun ? 'dry run' : name);
          if (name === 'create' || (name === 'apply' && !isDryRun)) this.sent = args[1] as KubeObject;
          return method.apply(target, args);
        };
      },
    });
  }
}

const OWNER = { apiVersion: 'example.com/v1', kind: 'Owner', name: 'rich', uid: 'rich-uid', controller: true };

/** What an apply can change of an object. */
export function contentOf(object: KubeObject): unknown {
  const { status: _, metadata, ...body } = object as KubeObject & { readonly status?: unknown };
  const {
    managedFields: __,
    resourceVersion: ___,
    generation: ____,
    ...kept
  } = metadata as typeof metadata & {
    readonly managedFields?: unknown;
  };
  return { ...body, metadata: kept };
}
