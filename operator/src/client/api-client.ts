import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';

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
