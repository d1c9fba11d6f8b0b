import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';

/** Names one object of a type. */
export interface ObjectRef {
  readonly name: string;
  /** Absent for cluster-scoped types. */
  readonly namespace?: string;
}

/** What every request accepts. */
export interface RequestOptions {
  /** Aborts the request; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Upper bound of one attempt, in milliseconds. @default 30000 */
  readonly timeoutMs?: number;
  /**
   * Upper bound of the request in all, in milliseconds: what waits for a connection, repetitions and the waits between them included. A repetition
   * that would not fit is left out, and the last refusal stands. @default none
   */
  readonly withinMs?: number;
  /** Waits for no connection that others use. For a few short requests that must not be late. @default false */
  readonly urgent?: boolean;
}

/** Options of a server-side apply. */
export interface ApplyOptions extends RequestOptions {
  readonly fieldManager: string;
  /** Take fields over from other managers. @default true */
  readonly force?: boolean;
  /** For example `status`. */
  readonly subresource?: string;
  /** Let the server check, default and admit, but store nothing. @default false */
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
  /** Delete only the object of this UID; the server answers 409 for another. */
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
  /** Ask for `PartialObjectMetadata` only. @default false */
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
   * Offered the resourceVersion of a change before it is parsed; true: that is all there is to know of it, and it is not told. Must not throw.
   * @default takes none
   */
  readonly takeEcho?: (resourceVersion: string) => boolean;
}

/** One event of a watch stream. An in-stream error is thrown as an `ApiError` instead. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

/**
 * The requests the operator makes of the Kubernetes API.
 *
 * Guarantees: pooled connections; 429 and 503 are retried as `Retry-After` says, other 5xx with `Retry-After` when the request is
 * idempotent (bounded: 5 attempts, 30 s of waiting); an idempotent request (GET, apply, PUT with a resourceVersion, DELETE with a UID) is
 * repeated once when a kept-alive connection turns out to be closed; every failure is an `ApiError` (the server answered), a
 * `TransportError` (it did not) or the reason of the caller's signal; credentials are refreshed before they expire and after a 401.
 *
 * Create, update and apply ask for strict field validation: an unknown field is an error in the server's words.
 */
export interface ApiClient {
  /** The API server's address, for messages. */
  readonly server: string;
  /** Undefined when there is none (404). */
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

/** The object's address in the API. */
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

/** What a child goes by for the contests while it does not stand: it is another object, with another UID, each time it is created. */
export function childKey(type: ResourceType, { metadata: { name, namespace = '' } }: KubeObject): string {
  return [typeKey(type), namespace, name].join(' ');
}

/**
 * Compares two resourceVersions: negative when `a` is older, 0 when they are the same, positive when `a` is newer.
 *
 * They are decimal numbers of up to 128 bits without leading zeros, so the longer is the greater, and among equally long ones the
 * order of the characters decides. The empty string is older than any.
 *
 * Source: KEP-5504, comparable resource versions; before that, etcd's revisions.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The ways to write. */
type WriteVerb = 'create' | 'update' | 'apply' | 'patch' | 'delete';

/** What happens before every write. */
interface WriteGuard {
  /** Throws when this process must not write, because it does not lead. */
  readonly assertMayWrite: () => void;
  /**
   * How long a write that is asked for now may take in all, in milliseconds, the waits and repetitions that the server asked for included: it
   * must have taken effect or failed before another process can lead.
   * @default no bound but that of each attempt
   */
  readonly withinMs?: () => number;
  /** Told of every write that is sent. */
  readonly onWrite: (verb: WriteVerb, type: ResourceType) => void;
}

/** A client whose writes pass a gate: the deadline of the Lease is checked before each, and each is counted. */
export function guardWrites(client: ApiClient, gate: WriteGuard): ApiClient {
  return {
    server: client.server,
    get: (type, ref, options) => client.get(type, ref, options),
    list: (type, options) => client.list(type, options),
    watch: (type, options) => client.watch(type, options),
    getPath: (path, options) => client.getPath(path, options),
    close: () => client.close(),
    // Each is a promise that rejects, never a call that throws.
    create: async (type, body, options) => client.create(type, body, guardWrite(gate, 'create', type, options)),
    update: async (type, body, options) => client.update(type, body, guardWrite(gate, 'update', type, options)),
    apply: async (type, body, options) => client.apply(type, body, guardWrite(gate, 'apply', type, options)),
    patch: async (type, ref, body, options) => client.patch(type, ref, body, guardWrite(gate, 'patch', type, options)),
    delete: async (type, ref, options = {}) => client.delete(type, ref, guardWrite(gate, 'delete', type, options)),
  };
}

/** The options of one write, if it may be sent. */
function guardWrite<O extends RequestOptions>(gate: WriteGuard, verb: WriteVerb, type: ResourceType, options: O): O {
  gate.assertMayWrite();
  gate.onWrite(verb, type);
  return gate.withinMs === undefined ? options : { ...options, withinMs: gate.withinMs() };
}
