import { childTypes, type AnyKind } from '../constructs/kind/kind';
import type { Condition, KubeObject } from '../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../constructs/kube/resource-type';
import type { ApiClient } from '../operator/client/api-client';
import { ObjectCache } from '../operator/informer/object-cache';
import { Reflector } from '../operator/informer/reflector';
import { CliError } from './errors';
import { untilAborted } from './shutdown';

/** Changes within this time are shown together, in milliseconds. */
const debounceMs = 100;

/** Watches every object of some kinds, and their children. */
export class ObjectWatcher {
  private readonly caches = new Map<string, ObjectCache>();
  private readonly reflectors: Reflector[] = [];
  private readonly listeners = new Set<(rows: readonly Row[]) => void>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    client: ApiClient,
    private readonly kinds: readonly AnyKind[],
  ) {
    for (const type of kinds.flatMap((kind) => [kind.type, ...childTypes(kind)])) this.watch(client, type);
  }

  /** Starts to watch; resolves when all existing objects are known. */
  async start(): Promise<void> {
    for (const reflector of this.reflectors) reflector.start();
    await Promise.all(this.reflectors.map((reflector) => reflector.synced()));
  }

  /** Calls the listener after every change. @returns a function that removes the listener */
  onChange(listener: (rows: readonly Row[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The objects by kind, then by namespace and name. */
  rows(): readonly Row[] {
    return this.kinds.flatMap((kind) =>
      this.cacheOf(kind.type)
        .list()
        .map(({ object }) => rowOf(object, this.childrenOf(kind, object.metadata.uid ?? '')))
        .sort((a, b) => (a.object < b.object ? -1 : 1)),
    );
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    this.listeners.clear();
    await Promise.all(this.reflectors.map((reflector) => reflector.stop()));
  }

  private childrenOf(kind: AnyKind, uid: string) {
    return childTypes(kind).flatMap((type) =>
      this.cacheOf(type)
        .byOwner(uid)
        .map(({ object }) => object),
    );
  }

  private watch(client: ApiClient, type: ResourceType): void {
    if (this.caches.has(typeKey(type))) return;
    const cache = new ObjectCache(type);
    cache.addEventHandler(() => this.scheduleNotify());
    this.caches.set(typeKey(type), cache);
    this.reflectors.push(new Reflector({ client, type, cache }));
  }

  private scheduleNotify(): void {
    if (this.listeners.size === 0) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const rows = this.rows();
      for (const listener of this.listeners) listener(rows);
    }, debounceMs);
  }

  private cacheOf(type: ResourceType): ObjectCache {
    const cache = this.caches.get(typeKey(type));
    if (cache === undefined) throw new TypeError(`the board does not watch ${typeKey(type)}`);
    return cache;
  }
}

/** The table of the objects of some kinds, which may change. */
export class LiveTable implements RowSource {
  private readonly listeners = new Set<(rows: readonly Row[]) => void>();
  private current: ObjectWatcher | undefined;
  /** What `watch` waits for. */
  private starting: ObjectWatcher | undefined;

  constructor(
    private readonly client: ApiClient,
    private readonly view: { show(rows: readonly Row[]): void },
  ) {}

  /** @throws TypeError before `watch` */
  private get watcher(): ObjectWatcher {
    if (this.current === undefined) throw new TypeError('nothing is watched yet');
    return this.current;
  }

  /** Shows the objects of these kinds, from when all of them are known; until then those of before. @throws the abort reason */
  async watch(kinds: readonly AnyKind[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const next = new ObjectWatcher(this.client, kinds);
    this.starting = next;
    try {
      await untilAborted(next.start(), signal);
    } catch (error) {
      await next.stop();
      throw error;
    } finally {
      this.starting = undefined;
    }
    const before = this.current;
    this.current = next;
    const changed = (rows: readonly Row[]): void => {
      for (const listener of this.listeners) listener(rows);
    };
    next.onChange((rows) => {
      this.view.show(rows);
      changed(rows);
    });
    if (before !== undefined) changed(next.rows());
    await before?.stop();
  }

  rows(): readonly Row[] {
    return this.watcher.rows();
  }

  /** Calls the listener after every change, whatever kinds are shown then. */
  onChange(listener: (rows: readonly Row[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  show(): void {
    this.view.show(this.watcher.rows());
  }

  /** Ends a `watch` that waits, too. */
  async stop(): Promise<void> {
    await Promise.all([this.starting?.stop(), this.current?.stop()]);
  }
}

/** One line of the table. */
export interface Row {
  readonly kind: string;
  /** `<namespace>/<name>`, or the name alone. */
  readonly object: string;
  /** `True`, `False`, `Unknown`, or `-` while the operator has not reported. */
  readonly ready: string;
  readonly reason: string;
  readonly message: string;
  /** `Deployment 1/1, Service x2`. */
  readonly children: string;
  /** Whether its current generation is Ready. */
  readonly isReady: boolean;
}

interface WithStatus extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly readyReplicas?: number };
}

/**
 * The line of an object and its children.
 *
 * @testonly
 */
export function rowOf(object: KubeObject, children: readonly KubeObject[]): Row {
  const { metadata, kind } = object;
  const condition = (object as WithStatus).status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    kind,
    object: metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`,
    ...readyState(object, condition),
    children: summaryOf(children),
  };
}

function readyState(
  { metadata }: KubeObject,
  condition: Condition | undefined,
): Pick<Row, 'ready' | 'reason' | 'message' | 'isReady'> {
  if (metadata.deletionTimestamp !== undefined) {
    const message = condition?.status === 'True' ? 'It is being deleted.' : (condition?.message ?? '');
    return { ready: 'False', reason: 'Deleting', message, isReady: false };
  }
  if (condition === undefined) {
    return { ready: '-', reason: 'Waiting', message: 'The operator has not reported on it yet.', isReady: false };
  }
  const { status: ready, reason, message, observedGeneration } = condition;
  const { generation } = metadata;
  if (observedGeneration !== undefined && generation !== undefined && observedGeneration < generation) {
    const seen = `The operator has reported on generation ${observedGeneration} of ${generation} so far.`;
    return { ready: 'Unknown', reason: 'Waiting', message: seen, isReady: false };
  }
  return { ready, reason, message, isReady: ready === 'True' };
}

/** The children by kind: how many there are and, for workloads, ready and desired pods. */
function summaryOf(children: readonly KubeObject[]): string {
  const byKind = new Map<string, KubeObject[]>();
  for (const child of children) byKind.set(child.kind, [...(byKind.get(child.kind) ?? []), child]);
  const parts = [...byKind].map(([kind, all]) => {
    const count = all.length === 1 ? '' : ` x${all.length}`;
    const pods = all.filter((child) => (child as WithStatus).spec?.replicas !== undefined);
    const sum = (of: (child: WithStatus) => number | undefined): number =>
      pods.reduce((total, child) => total + (of(child as WithStatus) ?? 0), 0);
    if (pods.length === 0) return `${kind}${count}`;
    return `${kind}${count} ${sum(({ status }) => status?.readyReplicas)}/${sum(({ spec }) => spec?.replicas)}`;
  });
  return parts.length === 0 ? 'none' : parts.join(', ');
}

/**
 * Why an object is not Ready, in one line.
 *
 * @testonly
 */
export function reasonLine({ kind, object, ready, reason, message }: Row): string {
  return `${kind} ${object}: Ready=${ready} (${reason})${message === '' ? '' : `: ${message.replace(/\s+/g, ' ')}`}`;
}

/** Something that has rows, such as an {@link ObjectWatcher}. */
export interface RowSource {
  rows(): readonly Row[];
  onChange(listener: (rows: readonly Row[]) => void): () => void;
}

/**
 * The rows of the awaited objects; the row of one that does not exist says so.
 */
export function awaitedRows(awaited: readonly KubeObject[], rows: readonly Row[]): readonly Row[] {
  return awaited.map(({ kind, metadata: { name, namespace } }) => {
    const object = namespace === undefined ? name : `${namespace}/${name}`;
    return (
      rows.find((row) => row.kind === kind && row.object === object) ?? {
        ...{ kind, object, ready: '-', reason: 'Missing', children: 'none', isReady: false },
        message: 'It was applied and is not there: somebody deleted it.',
      }
    );
  });
}

/** The error message for objects that did not become Ready in time. */
function notReady(rows: readonly Row[], seconds: number): string {
  const bad = rows.filter(({ isReady }) => !isReady);
  return [
    `${bad.length} of ${rows.length} objects are not Ready after ${seconds} s:`,
    ...bad.map((row) => `  ${reasonLine(row)}`),
    'Mend what the reasons say, or give them more time with --timeout=SECONDS; --log-file=FILE keeps the log of the operator.',
  ].join('\n');
}

/**
 * Resolves when all of the objects are Ready.
 *
 * @throws CliError at the deadline, with the reason of each that is not
 */
export function waitUntilReady(
  board: RowSource,
  awaited: readonly KubeObject[],
  options: { readonly timeoutSeconds: number; readonly signal: AbortSignal },
): Promise<void> {
  const { timeoutSeconds, signal } = options;
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      clearTimeout(deadline);
      signal.removeEventListener('abort', onAbort);
      unlisten();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason as Error));
    const deadline = setTimeout(() => {
      const message = notReady(awaitedRows(awaited, board.rows()), timeoutSeconds);
      finish(() => reject(new CliError(message)));
    }, timeoutSeconds * 1000);
    const look = (rows: readonly Row[]): void => {
      if (awaitedRows(awaited, rows).every(({ isReady }) => isReady)) finish(resolve);
    };
    const unlisten = board.onChange(look);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else look(board.rows());
  });
}
