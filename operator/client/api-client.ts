import type { KubeObject } from '../../constructs/kube/kube-object';
import { resourceName, typeKey, type ResourceType } from '../../constructs/kube/resource-type';

/** Name and namespace of one object. */
export interface ObjectRef {
  readonly name: string;
  /** Absent for cluster-scoped types. */
  readonly namespace?: string;
}

/** Options of every request. */
export interface RequestOptions {
  /** Aborts the request; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Upper bound of one attempt, in milliseconds. @default 30000 */
  readonly timeoutMs?: number;
  /**
   * Upper bound of the whole request, in milliseconds: waiting for a connection, retries and the waits
   * between them included. A retry that would not fit is not sent, and the last error is returned.
   * @default none
   */
  readonly withinMs?: number;
  /**
   * Never waits for a connection that other requests use. For a few short requests that must not be late.
   * @default false
   */
  readonly urgent?: boolean;
}

/** Options of a server-side apply. */
export interface ApplyOptions extends RequestOptions {
  readonly fieldManager: string;
  /** Take fields over from other managers. @default true */
  readonly force?: boolean;
  /** For example `status`. */
  readonly subresource?: string;
  /** Let the server validate, default and admit the object without storing it. @default false */
  readonly dryRun?: boolean;
}

/** Options of a create. */
export interface CreateOptions extends RequestOptions {
  readonly fieldManager: string;
  readonly dryRun?: boolean;
}

/** Options of a patch that is not an apply. */
export interface PatchOptions extends RequestOptions {
  readonly fieldManager: string;
  /** RFC 7386 merge patch or RFC 6902 JSON patch. */
  readonly type: 'merge' | 'json';
  readonly subresource?: string;
}

/** Options of a delete. */
export interface DeleteOptions extends RequestOptions {
  /** Delete only the object with this UID; for another the server responds with 409. */
  readonly uid?: string;
  /** Delete only at this resourceVersion. */
  readonly resourceVersion?: string;
  /** @default 'Background' */
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
}

/** One page of a list. */
export interface ListPage {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  /** Present while more pages follow. */
  readonly continueToken?: string;
}

/** Options of a list. */
export interface ListOptions extends RequestOptions {
  /** Limits the list to one namespace; absent lists all. */
  readonly namespace?: string;
  readonly limit?: number;
  readonly continueToken?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Request `PartialObjectMetadata` only. @default false */
  readonly metadataOnly?: boolean;
}

/** Options of one watch request. */
export interface WatchOptions {
  readonly namespace?: string;
  /** Start after this version; absent with `sendInitialEvents`. */
  readonly resourceVersion?: string;
  /** Streaming list: the server first sends every object, then a bookmark annotated `k8s.io/initial-events-end` (KEP-3157). */
  readonly sendInitialEvents?: boolean;
  /** After how many seconds the server ends the watch. */
  readonly timeoutSeconds: number;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly signal: AbortSignal;
  /** Reject when nothing at all arrived for this long, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Called when the server has accepted the watch, before its first event. */
  readonly onOpen?: () => void;
  /**
   * Receives the resourceVersion of a change before the event is parsed. When it returns true, the event is
   * neither parsed nor yielded. Must not throw.
   * @default every event is yielded
   */
  readonly skipOwnEcho?: (resourceVersion: string) => boolean;
}

/** One event of a watch stream. An in-stream error is thrown as an `ApiError` instead. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

/**
 * The requests that the operator sends to the Kubernetes API.
 *
 * Guarantees:
 * - Connections are pooled, and credentials are refreshed before they expire and after a 401.
 * - 429 and 503 are retried as `Retry-After` says, other 5xx responses with `Retry-After` when the request is
 *   idempotent (at most 5 attempts and 30 s of waiting).
 * - An idempotent request (GET, apply, PUT with a resourceVersion, DELETE with a UID) is repeated once when a
 *   kept-alive connection turns out to be closed.
 * - Every failure is an `ApiError` (the server responded), a `TransportError` (it did not) or the reason of
 *   the caller's signal.
 *
 * Create, update and apply use strict field validation: the server rejects an unknown field.
 */
export interface ApiClient {
  /** The API server's address, for messages. */
  readonly server: string;
  /** Undefined when the object does not exist (404). */
  get(type: ResourceType, ref: ObjectRef, options?: RequestOptions): Promise<KubeObject | undefined>;
  list(type: ResourceType, options?: ListOptions): Promise<ListPage>;
  /** POST. The namespace is the body's. */
  create(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject>;
  /** PUT of a whole object; the body's resourceVersion, if any, is the precondition. */
  update(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject>;
  /** Server-side apply; a `metadata.uid` in the body is a precondition. */
  apply(type: ResourceType, body: KubeObject, options: ApplyOptions): Promise<KubeObject>;
  patch(type: ResourceType, ref: ObjectRef, body: unknown, options: PatchOptions): Promise<KubeObject>;
  /** False when there was nothing to delete (404). */
  delete(type: ResourceType, ref: ObjectRef, options?: DeleteOptions): Promise<boolean>;
  watch(type: ResourceType, options: WatchOptions): AsyncIterable<WatchEvent>;
  /** GET of any path, parsed as JSON; for `/version` and the like. */
  getPath(path: string, options?: RequestOptions): Promise<unknown>;
  /** Ends all connections; open requests reject. */
  close(): Promise<void>;
}

/** The name and namespace of an object. */
export function refOf(object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

/** The UID of an object that came from the server. */
export function uidOf(live: KubeObject): string {
  const { uid } = live.metadata;
  if (uid === undefined) throw new TypeError(`${live.kind} ${live.metadata.name} came from the server without a uid`);
  return uid;
}

/**
 * Identifies a child by type, namespace and name. Its UID cannot: each time it is created it is another
 * object.
 */
export function childKey(type: ResourceType, { metadata: { name, namespace = '' } }: KubeObject): string {
  return [typeKey(type), namespace, name].join(' ');
}

/**
 * The arguments that name an object to kubectl: `deployments.apps web --namespace=shop`. Quoted for a shell:
 * the names of some types may contain any character but `/` and `%`.
 */
export function kubectlTarget(type: ResourceType, { name, namespace }: ObjectRef): string {
  const quoted = /^[\w.:-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;
  return `${resourceName(type)} ${quoted}${namespace === undefined ? '' : ` --namespace=${namespace}`}`;
}

/**
 * Compares two resourceVersions: negative when `a` is older, 0 when they are the same, positive when `a` is
 * newer.
 *
 * A resourceVersion is a decimal number of up to 128 bits without leading zeros: the longer one is greater,
 * and equally long ones compare as strings. The empty string is older than any.
 *
 * Source: KEP-5504, comparable resource versions; before that, etcd's revisions.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

type WriteVerb = 'create' | 'update' | 'apply' | 'patch' | 'delete';

/** Runs before every write. */
interface WriteGuard {
  /** Throws when this process is not the leader and must not write. */
  readonly assertMayWrite: () => void;
  /**
   * Upper bound of a write that starts now, in milliseconds, retries and their waits included: the write must
   * have taken effect or failed before another process can become the leader.
   * @default only the bound of each attempt
   */
  readonly withinMs?: () => number;
  /** Called for every write that is sent. */
  readonly onWrite: (verb: WriteVerb, type: ResourceType) => void;
}

/** A client that checks the deadline of the Lease before each write, and counts the writes. */
export function guardWrites(client: ApiClient, gate: WriteGuard): ApiClient {
  return {
    server: client.server,
    get: (type, ref, options) => client.get(type, ref, options),
    list: (type, options) => client.list(type, options),
    watch: (type, options) => client.watch(type, options),
    getPath: (path, options) => client.getPath(path, options),
    close: () => client.close(),
    // `async`, so that a failing check rejects the promise and never throws synchronously.
    create: async (type, body, options) => client.create(type, body, guardWrite(gate, 'create', type, options)),
    update: async (type, body, options) => client.update(type, body, guardWrite(gate, 'update', type, options)),
    apply: async (type, body, options) => client.apply(type, body, guardWrite(gate, 'apply', type, options)),
    patch: async (type, ref, body, options) => client.patch(type, ref, body, guardWrite(gate, 'patch', type, options)),
    delete: async (type, ref, options = {}) => client.delete(type, ref, guardWrite(gate, 'delete', type, options)),
  };
}

/** The options of one write. Throws when the write may not be sent. */
function guardWrite<O extends RequestOptions>(gate: WriteGuard, verb: WriteVerb, type: ResourceType, options: O): O {
  gate.assertMayWrite();
  if (!('dryRun' in options && options.dryRun === true)) gate.onWrite(verb, type);
  return gate.withinMs === undefined ? options : { ...options, withinMs: gate.withinMs() };
}
