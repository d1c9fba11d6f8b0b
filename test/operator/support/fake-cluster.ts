import type { ServerResponse } from 'node:http';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { FakeApiServer, json, status, type SeenRequest } from './fake-api-server';

/** The type that the fake cluster serves. */
export const CONFIG_MAPS: ResourceType = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
};

interface StoredEvent {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

interface Watcher {
  readonly response: ServerResponse;
  /** The version it began at: the API server sends nothing of this version or below, even if its own is lower. */
  readonly from: number;
  /** True: events are held back, as by a network that swallows packets. */
  silent: boolean;
}

/** A store of ConfigMaps behind the list and watch protocol, with switches for what servers do in bad hours. */
export class FakeCluster {
  readonly server = new FakeApiServer((request, response) => this.answer(request, response));
  /** False: refuses `sendInitialEvents`, as servers without the feature do. */
  streamingLists = true;
  /** True: accepts `sendInitialEvents` and then ends the stream with an error 500, as servers do whose etcd is too old for it. */
  breaksStreamingLists = false;
  /** True: tells of an expired version inside the stream instead of by the HTTP status. */
  expiresInStream = false;
  private held: { readonly bytes: Buffer; readonly version: number }[] | undefined;
  private revision = 100;
  private compacted = 0;
  private readonly objects = new Map<string, KubeObject>();
  private history: StoredEvent[] = [];
  private readonly watchers = new Set<Watcher>();
  private readonly snapshots = new Map<string, { readonly items: KubeObject[]; readonly version: number }>();

  get openWatches(): number {
    return this.watchers.size;
  }

  get lists(): readonly SeenRequest[] {
    return this.server.requests.filter(({ query }) => !query.has('watch') || query.has('sendInitialEvents'));
  }

  get watches(): readonly SeenRequest[] {
    return this.server.requests.filter(({ query }) => query.has('watch'));
  }

  /** Creates or changes an object; the new state. */
  put(name: string, data: Record<string, string> = {}, namespace = 'default'): KubeObject {
    const key = `${namespace}/${name}`;
    const before = this.objects.get(key);
    const version = ++this.revision;
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace,
        uid: before?.metadata.uid ?? `uid-${version}`,
        resourceVersion: String(version),
      },
      data,
    };
    this.objects.set(key, object);
    this.record({ version, type: before === undefined ? 'ADDED' : 'MODIFIED', object });
    return object;
  }

  remove(name: string, namespace = 'default'): void {
    const key = `${namespace}/${name}`;
    const before = this.objects.get(key);
    if (before === undefined) throw new Error(`${key} is not there`);
    const version = ++this.revision;
    this.objects.delete(key);
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } };
    this.record({ version, type: 'DELETED', object });
  }

  /** Forgets all events so far. */
  compact(): void {
    this.compacted = this.revision;
    this.history = [];
    this.snapshots.clear();
  }

  /** Sets the history back, as an etcd restored from a backup does. */
  restore(revision: number): void {
    this.revision = revision;
    this.compacted = 0;
    this.history = [];
  }

  /** Something else in the cluster changes, so that only bookmarks can tell how far this type is. */
  tick(by = 1): void {
    this.revision += by;
  }

  bookmark(): void {
    this.send(bookmarkAt(this.revision), this.revision);
  }

  /** Writes to all watches that began before `version`; by default to all. */
  send(event: unknown, version = Infinity): void {
    this.sendBytes(Buffer.from(`${JSON.stringify(event)}\n`), version);
  }

  sendBytes(bytes: Buffer, version = Infinity): void {
    if (this.held !== undefined) {
      this.held.push({ bytes, version });
      return;
    }
    for (const { response, silent, from } of this.watchers)
      if (!silent && from < version && !response.writableEnded) response.write(bytes);
  }

  /** From now on events are late. */
  hold(): void {
    this.held = [];
  }

  /** What was held back is sent. */
  release(): void {
    const held = this.held ?? [];
    this.held = undefined;
    for (const { bytes, version } of held) this.sendBytes(bytes, version);
  }

  /** What was held back is lost; later events arrive. */
  drop(): void {
    this.held = undefined;
  }

  /** Ends all watches as planned. */
  end(): void {
    for (const { response } of this.watchers) response.end();
  }

  /** Nothing more arrives on the watches that are open now. */
  silence(): void {
    for (const watcher of this.watchers) watcher.silent = true;
  }

  /** What the cache ought to hold: versions by `namespace/name`. */
  state(): Record<string, string | undefined> {
    return Object.fromEntries([...this.objects].map(([key, { metadata }]) => [key, metadata.resourceVersion]));
  }

  /** Answers as the API server would. */
  answer(request: SeenRequest, response: ServerResponse): void {
    if (request.query.get('watch') === 'true') this.watch(request, response);
    else this.list(request, response);
  }

  private list({ query }: SeenRequest, response: ServerResponse): void {
    const token = query.get('continue');
    const snapshot =
      token === null
        ? { items: [...this.objects.values()], version: this.revision }
        : this.snapshots.get(token.split(':')[0] ?? '');
    if (snapshot === undefined) {
      status(response, 410, 'Expired');
      return;
    }
    const start = Number(token?.split(':')[1] ?? 0);
    const end = start + Number(query.get('limit') ?? Infinity);
    const id = token?.split(':')[0] ?? `snapshot${this.snapshots.size}at${snapshot.version}`;
    this.snapshots.set(id, snapshot);
    const more = end < snapshot.items.length;
    json(response, {
      metadata: { resourceVersion: String(snapshot.version), ...(more ? { continue: `${id}:${end}` } : {}) },
      items: snapshot.items.slice(start, end).map(({ metadata, data }) => ({ metadata, data })),
    });
  }

  private watch({ query }: SeenRequest, response: ServerResponse): void {
    const initial = query.get('sendInitialEvents') === 'true';
    if (initial && !this.streamingLists) {
      status(response, 422, 'Invalid', { message: 'sendInitialEvents is forbidden for watch' });
      return;
    }
    const from = Number(query.get('resourceVersion') ?? 0);
    const expired = !initial && from < this.compacted;
    if (expired && !this.expiresInStream) {
      status(response, 410, 'Expired');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const write = (event: unknown): boolean => response.write(`${JSON.stringify(event)}\n`);
    const fail = (code: number, reason: string, message: string): void => {
      write({ type: 'ERROR', object: { kind: 'Status', code, reason, message } });
      response.end();
    };
    if (expired) {
      fail(410, 'Expired', 'too old resource version');
      return;
    }
    if (initial && this.breaksStreamingLists) {
      fail(500, 'InternalError', 'the required storage feature RequestWatchProgress is disabled');
      return;
    }
    if (initial) {
      for (const object of this.objects.values()) write({ type: 'ADDED', object });
      write(bookmarkAt(this.revision, { 'k8s.io/initial-events-end': 'true' }));
    } else {
      for (const { version, type, object } of this.history) if (version > from) write({ type, object });
    }
    const watcher: Watcher = { response, from: initial ? this.revision : from, silent: false };
    this.watchers.add(watcher);
    response.on('close', () => this.watchers.delete(watcher));
  }

  private record(event: StoredEvent): void {
    this.history.push(event);
    this.send({ type: event.type, object: event.object }, event.version);
  }
}

/** A BOOKMARK event. */
export function bookmarkAt(version: number, annotations?: Record<string, string>): unknown {
  return {
    type: 'BOOKMARK',
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { resourceVersion: String(version), annotations } },
  };
}
