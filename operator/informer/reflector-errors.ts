import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { ApiError, TransportError } from '../client/errors';
import { IdleTimeoutError } from '../client/watch-stream';

/** The server ended a watch right after it began. */
export class ShortWatchError extends Error {
  override readonly name = 'ShortWatchError';
}

/** The server's versions are lower than before. */
export class HistoryRolledBackError extends Error {
  override readonly name = 'HistoryRolledBackError';
}

/** The server accepted a streaming list and then did not send one. */
export class WatchListUnsupportedError extends Error {
  override readonly name = 'WatchListUnsupportedError';
}

/** One object that could not be stored in the cache; the others were. */
export class UndecodableObjectError extends Error {
  override readonly name = 'UndecodableObjectError';
  constructor(
    readonly type: ResourceType,
    /** `namespace/name`, as far as known. */
    readonly object: string,
    why: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`${type.kind} ${object} was left out of the cache: ${why}`, options);
  }
}

/**
 * Nothing arrived on a watch. Either the connection is dead, or nothing happened: an API server sends no
 * bookmarks for a type that has not changed since it started. A new watch from the last version shows which;
 * only its failure means a problem.
 */
export function isIdleTimeout(error: unknown): boolean {
  return error instanceof TransportError && error.cause instanceof IdleTimeoutError;
}

/** The server no longer knows the version of the watch: a new list is needed. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/** The server does not have the type. A namespace that does not exist is not this case: its list is empty. */
export function isTypeMissing(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

/** Servers without the feature reject its parameters as invalid; some proxies as not implemented. */
export function isWatchListUnsupported(error: unknown): boolean {
  return error instanceof ApiError && [400, 405, 406, 422, 501].includes(error.code);
}

/** Errors that do not concern streaming: a paged list would get the same ones. */
const NOT_ABOUT_STREAMS: readonly number[] = [401, 403, 404, 410, 429];

/**
 * The server ended a streaming list with an error, which may concern only the streaming. With an etcd that
 * cannot report its progress (before 3.4.31 and 3.5.13) the server accepts every one, only to end it with a
 * 500. client-go falls back to a plain list after any failure.
 */
export function isWatchListFailure(error: unknown): boolean {
  return error instanceof ApiError && !NOT_ABOUT_STREAMS.includes(error.code);
}

/** Why an object cannot be cached, or undefined when it can. The server's response is not trusted here. */
export function undecodableReason(object: KubeObject): string | undefined {
  const metadata: unknown = object.metadata;
  if (typeof metadata !== 'object' || metadata === null) return 'it has no metadata';
  for (const field of ['name', 'uid', 'resourceVersion']) {
    const value: unknown = (metadata as Record<string, unknown>)[field];
    if (typeof value !== 'string' || value === '') return `it has no metadata.${field}`;
  }
  return undefined;
}

/** `namespace/name`, or as much of it as there is. */
export function describeObject(object: KubeObject): string {
  const metadata = (object.metadata as Partial<KubeObject['metadata']> | null | undefined) ?? {};
  const name = typeof metadata.name === 'string' ? metadata.name : '(without a name)';
  return typeof metadata.namespace === 'string' ? `${metadata.namespace}/${name}` : name;
}
