import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type {
  ApiClient,
  ApplyOptions,
  CreateOptions,
  DeleteOptions,
  ListOptions,
  ListPage,
  ObjectRef,
  PatchOptions,
  RequestOptions,
  WatchEvent,
  WatchOptions,
} from './api-client';
import type { ClusterAccess } from './cluster-access';
import { ApiError, toTransportError } from './errors';
import type { ExchangeResponse } from './exchange';
import { Requester, responseStatus, type Call, type RequesterOptions, type StreamCall } from './requester';
import { watchEvents } from './watch-stream';

/** Options of the client. */
export type HttpApiClientOptions = RequesterOptions;

/** Creates a client for a cluster; see `loadClusterAccess`. */
export function createApiClient(access: ClusterAccess, options: HttpApiClientOptions = {}): ApiClient {
  return new HttpApiClient(access, options);
}

/** `ApiClient` over HTTP/1.1 and JSON. */
class HttpApiClient implements ApiClient {
  readonly server: string;
  private readonly requester: Requester;

  constructor(access: ClusterAccess, options: HttpApiClientOptions = {}) {
    this.server = access.server;
    this.requester = new Requester(access, options);
  }

  async get(type: ResourceType, ref: ObjectRef, options: RequestOptions = {}): Promise<KubeObject | undefined> {
    const call: Call = { method: 'GET', path: objectPath(type, ref), type, idempotent: true, ...bounds(options) };
    const response = await this.requester.send(call);
    return response.code === 404 ? undefined : this.object(call, response);
  }

  async list(type: ResourceType, options: ListOptions = {}): Promise<ListPage> {
    const { limit, continueToken, resourceVersion, resourceVersionMatch, labelSelector, fieldSelector } = options;
    const call: Call = {
      method: 'GET',
      path: collectionPath(type, options.namespace),
      query: query({
        limit,
        continue: continueToken,
        resourceVersion,
        resourceVersionMatch,
        labelSelector,
        fieldSelector,
      }),
      type,
      idempotent: true,
      ...(options.metadataOnly === true ? { accept: METADATA_LIST_TYPE } : {}),
      ...bounds(options),
    };
    return this.page(type, call, await this.requester.send(call));
  }

  async create(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject> {
    return this.write(options, {
      method: 'POST',
      path: collectionPath(type, namespaceOf(type, body)),
      query: query({ fieldManager: options.fieldManager, fieldValidation: 'Strict', ...dryRun(options.dryRun) }),
      type,
      body: JSON.stringify(body),
      contentType: JSON_TYPE,
      idempotent: false,
    });
  }

  async update(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject> {
    return this.write(options, {
      method: 'PUT',
      path: objectPath(type, body.metadata),
      query: query({ fieldManager: options.fieldManager, fieldValidation: 'Strict', ...dryRun(options.dryRun) }),
      type,
      body: JSON.stringify(body),
      contentType: JSON_TYPE,
      idempotent: body.metadata.resourceVersion !== undefined,
    });
  }

  async apply(type: ResourceType, body: KubeObject, options: ApplyOptions): Promise<KubeObject> {
    return this.write(options, {
      method: 'PATCH',
      path: objectPath(type, body.metadata, options.subresource),
      query: query({
        fieldManager: options.fieldManager,
        force: options.force ?? true,
        fieldValidation: 'Strict',
        ...dryRun(options.dryRun),
      }),
      type,
      body: JSON.stringify(body),
      contentType: APPLY_TYPE,
      idempotent: true,
    });
  }

  async patch(type: ResourceType, ref: ObjectRef, body: unknown, options: PatchOptions): Promise<KubeObject> {
    return this.write(options, {
      method: 'PATCH',
      path: objectPath(type, ref, options.subresource),
      query: query({ fieldManager: options.fieldManager }),
      type,
      body: JSON.stringify(body),
      contentType: PATCH_TYPES[options.type],
      idempotent: false,
    });
  }

  async delete(type: ResourceType, ref: ObjectRef, options: DeleteOptions = {}): Promise<boolean> {
    const { uid, resourceVersion } = options;
    const call: Call = {
      method: 'DELETE',
      path: objectPath(type, ref),
      type,
      body: JSON.stringify({
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: options.propagation ?? 'Background',
        ...(uid === undefined && resourceVersion === undefined ? {} : { preconditions: { uid, resourceVersion } }),
      }),
      contentType: JSON_TYPE,
      idempotent: uid !== undefined,
      ...bounds(options),
    };
    const response = await this.requester.send(call);
    if (response.code === 404) return false;
    if (response.code >= 400) throw toApiError(call, response);
    return true;
  }

  watch(type: ResourceType, options: WatchOptions): AsyncGenerator<WatchEvent, void, undefined> {
    const path = collectionPath(type, options.namespace);
    const { resourceVersion, sendInitialEvents, timeoutSeconds, labelSelector, fieldSelector, signal } = options;
    const request = `GET ${path}`;
    const call: StreamCall = {
      path,
      query: query({
        watch: true,
        allowWatchBookmarks: true,
        timeoutSeconds,
        resourceVersion,
        ...(sendInitialEvents === true ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' } : {}),
        labelSelector,
        fieldSelector,
      }),
      type,
      signal,
      idleTimeoutMs: options.idleTimeoutMs,
    };
    return watchEvents({
      request,
      open: async () => {
        const stream = await this.requester.open(call);
        options.onOpen?.();
        return stream;
      },
      skipOwnEcho: options.skipOwnEcho,
      failure: (error) => this.requester.failure(request, error, signal),
    });
  }

  async getPath(path: string, options: RequestOptions = {}): Promise<unknown> {
    const [bare = path, search] = path.split('?', 2);
    const call: Call = {
      method: 'GET',
      path: bare,
      ...(search === undefined ? {} : { query: `?${search}` }),
      idempotent: true,
      ...bounds(options),
    };
    const response = await this.requester.send(call);
    if (response.code >= 400) throw toApiError(call, response);
    return this.parse(call, response);
  }

  async close(): Promise<void> {
    await this.requester.close();
  }

  private async write(options: RequestOptions, call: Call): Promise<KubeObject> {
    const bounded = { ...call, ...bounds(options) };
    return this.object(bounded, await this.requester.send(bounded));
  }

  private object(call: Call, response: ExchangeResponse): KubeObject {
    if (response.code >= 400) throw toApiError(call, response);
    return this.parse(call, response) as KubeObject;
  }

  private page(type: ResourceType, call: Call, response: ExchangeResponse): ListPage {
    if (response.code >= 400) throw toApiError(call, response);
    const list = this.parse(call, response) as WireList;
    const items = list.items ?? [];
    for (const item of items) {
      // Lists of built-in types leave both out; metadata lists say PartialObjectMetadata.
      item.apiVersion = type.apiVersion;
      item.kind = type.kind;
    }
    const continueToken = list.metadata?.continue;
    return {
      items: items as unknown as readonly KubeObject[],
      resourceVersion: list.metadata?.resourceVersion ?? '',
      ...(continueToken === undefined || continueToken === '' ? {} : { continueToken }),
    };
  }

  private parse(call: Call, response: ExchangeResponse): unknown {
    try {
      return JSON.parse(response.body);
    } catch {
      // The parser's own message quotes the body, which may be part of a Secret.
      const cause = new SyntaxError(
        `the answer, ${response.body.length} characters, is not JSON; is a proxy in between?`,
      );
      throw toTransportError(`${call.method} ${call.path}`, this.server, cause);
    }
  }
}

/** Content type of server-side apply. The body is JSON, which is also YAML. */
const APPLY_TYPE = 'application/apply-patch+yaml';
const JSON_TYPE = 'application/json';
const PATCH_TYPES = { merge: 'application/merge-patch+json', json: 'application/json-patch+json' } as const;
const METADATA_LIST_TYPE = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

interface WireList {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: { apiVersion?: string; kind?: string }[] | null;
}

type Bounds = Pick<Call, 'timeoutMs' | 'withinMs' | 'signal' | 'urgent'>;

function bounds({ timeoutMs, withinMs, signal, urgent }: RequestOptions): Bounds {
  return { timeoutMs, withinMs, signal, urgent };
}

function dryRun(wanted: boolean | undefined): { dryRun?: 'All' } {
  return wanted === true ? { dryRun: 'All' } : {};
}

function namespaceOf(type: ResourceType, body: KubeObject): string | undefined {
  if (type.scope === 'Namespaced' && body.metadata.namespace === undefined) {
    throw new TypeError(
      `${type.kind} ${JSON.stringify(body.metadata.name)}: metadata.namespace is missing, and ${type.plural} live in one.`,
    );
  }
  return body.metadata.namespace;
}

function toApiError(call: Call, response: ExchangeResponse): ApiError {
  return new ApiError(responseStatus(response), `${call.method} ${call.path}`);
}

/**
 * The REST path of one object or of a subresource of it.
 * @throws TypeError for a name that is not valid in a path, or a namespaced type without a namespace.
 */
function objectPath(
  type: ResourceType,
  ref: { readonly name: string; readonly namespace?: string },
  subresource?: string,
): string {
  if (type.scope === 'Namespaced' && ref.namespace === undefined) {
    throw new TypeError(
      `${type.kind} ${JSON.stringify(ref.name)}: the namespace is missing, and ${type.plural} live in one.`,
    );
  }
  const path = `${collectionPath(type, ref.namespace)}/${segment(ref.name, 'name', type)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource, 'subresource', type)}`;
}

/**
 * The REST path of all objects of a type, in one namespace or, without one, in all.
 * @throws TypeError for a namespace that is not valid in a path.
 */
function collectionPath(type: ResourceType, namespace?: string): string {
  if (namespace === undefined || type.scope === 'Cluster') return `${prefixOf(type)}/${type.plural}`;
  return `${prefixOf(type)}/namespaces/${segment(namespace, 'namespace', type)}/${type.plural}`;
}

/** A query string with its `?`, or nothing; parameters that are undefined or false are left out. */
function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === false) continue;
    text += `${text === '' ? '?' : '&'}${name}=${encodeURIComponent(value)}`;
  }
  return text;
}

const prefixes = new WeakMap<ResourceType, string>();
const PLAIN_SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** The path of a resource type's group and version: `/api/v1` or `/apis/apps/v1`. */
function prefixOf(type: ResourceType): string {
  let prefix = prefixes.get(type);
  if (prefix === undefined) {
    prefix = `${type.apiVersion.includes('/') ? '/apis' : '/api'}/${type.apiVersion}`;
    prefixes.set(type, prefix);
  }
  return prefix;
}

function segment(value: string, what: string, type: ResourceType): string {
  if (PLAIN_SEGMENT.test(value)) return value;
  if (value === '' || value === '.' || value === '..') {
    throw new TypeError(`${type.kind}: ${JSON.stringify(value)} is no ${what}; pass the object's own.`);
  }
  return encodeURIComponent(value);
}
