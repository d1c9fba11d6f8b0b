import { EventEmitter, once } from 'node:events';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ListPage, WatchEvent, WatchOptions } from '../../../operator/client/api-client';
import { ApiError, TransportError } from '../../../operator/client/errors';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

const { Deployment } = owned;

/** Its watches list, and then withhold every event; those of the kind can be down. */
export class QuietServer extends MemoryApiServer {
  listed = 0;
  /** A watch of the kind fails: once it has listed, or at once. */
  down: 'no' | 'after the list' | 'yes' = 'no';
  private readonly bookmarks = new EventEmitter();

  /** The watches say how far they have come, as if they had told all that came before. */
  bookmark(): void {
    this.bookmarks.emit('bookmark');
  }

  override async *watch(type: ResourceType = Deployment, options?: WatchOptions): AsyncIterable<WatchEvent> {
    const isKind = type.kind === 'HelloApp';
    if (isKind && this.down === 'yes') throw new TransportError('no route', 'WATCH');
    options?.onOpen?.();
    if (options?.sendInitialEvents === true) {
      if (isKind) this.listed++;
      for (const object of this.all(type)) yield { type: 'ADDED', object };
      yield this.bookmarkOf(type, { 'k8s.io/initial-events-end': 'true' });
    }
    if (isKind && this.down === 'after the list') throw new TransportError('cut', 'WATCH');
    const signal = options?.signal;
    for (;;) {
      await once(this.bookmarks, 'bookmark', signal === undefined ? {} : { signal });
      yield this.bookmarkOf(type);
    }
  }

  private bookmarkOf({ apiVersion, kind }: ResourceType, annotations: Record<string, string> = {}): WatchEvent {
    const metadata = { name: '', resourceVersion: this.version, annotations };
    return { type: 'BOOKMARK', object: { apiVersion, kind, metadata } };
  }
}

/** It lacks a type, and can end the watches of one. */
export class PartialServer extends QuietServer {
  lacks: string | undefined;
  refused = 0;
  private readonly ends = new EventEmitter();

  endWatches(kind: string): void {
    this.ends.emit(kind);
  }

  override async *watch(type: ResourceType = Deployment, options?: WatchOptions): AsyncIterable<WatchEvent> {
    if (this.lacks === type.kind) throw this.notFound(type);
    const ended = new AbortController();
    this.ends.once(type.kind, () => ended.abort(this.notFound(type)));
    const signal = AbortSignal.any([ended.signal, ...(options?.signal === undefined ? [] : [options.signal])]);
    yield* super.watch(type, { timeoutSeconds: 300, idleTimeoutMs: 70_000, ...options, signal });
  }

  override async list(type: ResourceType, ...rest: readonly unknown[]): Promise<ListPage> {
    if (this.lacks === type.kind) throw this.notFound(type);
    return super.list(type, ...(rest as []));
  }

  private notFound({ plural }: ResourceType): ApiError {
    this.refused++;
    const message = 'the server could not find the requested resource';
    return new ApiError({ code: 404, reason: 'NotFound', message, causes: [] }, `LIST ${plural}`);
  }
}
