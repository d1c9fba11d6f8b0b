import { errorMessage } from '../../constructs/kube/errors';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type * as api from '../../operator/client/api-client';
import { FieldConflictError, serverSideApply, type FieldManager } from './managed-fields';
import { MemoryStore, type Body } from './memory-store';
import { conflict, formatRequest, notFound, apiError, jsonCopy, type MemoryRequest } from './requests';

/**
 * An in-memory API server for the operator: field ownership per manager, preconditions, generations, resource
 * versions, finalizers, and a garbage collector that runs when the test calls it. It validates nothing.
 */
export class MemoryApiServer extends MemoryStore implements api.ApiClient {
  readonly server = 'memory';
  readonly requests: MemoryRequest[] = [];
  /** Called before each request takes effect; what it throws is the response. */
  before: (request: MemoryRequest) => void | Promise<void> = () => undefined;
  /** Called after each request has taken effect, before its response; what it throws is the response. */
  after: (request: MemoryRequest) => void | Promise<void> = () => undefined;
  /** Namespaces that are being deleted. */
  readonly terminating = new Set<string>();

  /** The writes so far, one line each; a dry run is none. */
  get writes(): readonly string[] {
    return this.requests
      .filter(({ verb, options }) => verb !== 'GET' && verb !== 'LIST' && options?.dryRun !== true)
      .map(formatRequest);
  }

  /** Returns the requests so far and clears them. */
  takeRequests(): readonly MemoryRequest[] {
    return this.requests.splice(0);
  }

  async get(type: ResourceType, ref: api.ObjectRef): Promise<KubeObject | undefined> {
    return this.handle({ verb: 'GET', type, ref }, () => this.find(type, ref));
  }

  async list(type: ResourceType): Promise<api.ListPage> {
    return this.handle({ verb: 'LIST', type, ref: { name: '' } }, () => ({
      items: this.all(type),
      resourceVersion: this.version,
    }));
  }

  async create(type: ResourceType, body: Body, options: api.CreateOptions): Promise<KubeObject> {
    const ref = body.metadata;
    return this.handle(request('POST', type, ref, body, options), () => {
      if (ref.namespace !== undefined && this.terminating.has(ref.namespace)) {
        const message = `${type.plural} "${ref.name}" is forbidden: unable to create new content in namespace ${ref.namespace} because it is being terminated`;
        throw apiError(403, 'Forbidden', message, [{ reason: 'NamespaceTerminating' }]);
      }
      if (this.find(type, ref) !== undefined) {
        throw apiError(409, 'AlreadyExists', `${type.plural} "${ref.name}" already exists`);
      }
      return this.insert(type, body, { manager: options.fieldManager, operation: 'Update' });
    });
  }

  async update(type: ResourceType, body: Body, options: api.CreateOptions): Promise<KubeObject> {
    return this.handle(request('PUT', type, body.metadata, body, options), () => {
      return this.replace(type, body.metadata, body, { manager: options.fieldManager, operation: 'Update' });
    });
  }

  async apply(type: ResourceType, body: Body, options: api.ApplyOptions): Promise<KubeObject> {
    const { fieldManager: manager, subresource, force = true, dryRun = false } = options;
    return this.handle(request('APPLY', type, body.metadata, body, options), () => {
      const writer: FieldManager = { manager, operation: 'Apply', subresource };
      const live = this.find(type, body.metadata);
      const { uid, resourceVersion } = body.metadata;
      if (uid !== undefined && live?.metadata.uid !== uid) {
        throw conflict(
          `uid mismatch: the provided object specified uid ${uid}, the existing one has ${live?.metadata.uid ?? 'none'}`,
        );
      }
      if (live === undefined) {
        if (subresource !== undefined) throw notFound(type, body.metadata);
        return this.insert(type, body, writer);
      }
      if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion) {
        throw conflict('the object has been modified; please apply your changes to the latest version and try again');
      }
      try {
        const { status, ...main } = body;
        const said = subresource === 'status' ? { ...identity(body), status } : main;
        const result = serverSideApply(live, said, writer, force);
        return dryRun ? this.admitted(live, result) : this.commit(type, live, result);
      } catch (error) {
        if (error instanceof FieldConflictError) throw conflict(`Apply failed with conflicts: ${error.message}`);
        throw error;
      }
    });
  }

  async patch(type: ResourceType, ref: api.ObjectRef, body: unknown, options: api.PatchOptions): Promise<KubeObject> {
    return this.handle(request('PATCH', type, ref, body, options), () => {
      const live = this.find(type, ref);
      if (live === undefined) throw notFound(type, ref);
      const writer: FieldManager = {
        manager: options.fieldManager,
        operation: 'Update',
        subresource: options.subresource,
      };
      return this.replace(type, ref, patched(live, body, options.type), writer);
    });
  }

  async delete(type: ResourceType, ref: api.ObjectRef, options: api.DeleteOptions = {}): Promise<boolean> {
    return this.handle(request('DELETE', type, ref, undefined, { propagation: 'Background', ...options }), () => {
      const live = this.find(type, ref);
      if (live === undefined) return false;
      const { uid, resourceVersion } = live.metadata;
      if (options.uid !== undefined && options.uid !== uid)
        throw conflict(`uid precondition: ${options.uid}, not ${uid ?? ''}`);
      if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
        throw conflict(`resourceVersion precondition: ${options.resourceVersion}, not ${resourceVersion ?? ''}`);
      }
      this.beginDeletion(type, live, options.propagation ?? 'Background');
      return true;
    });
  }

  async *watch(): AsyncIterable<api.WatchEvent> {
    await Promise.reject(new Error('feed() fills the caches; nothing watches'));
  }

  async getPath(): Promise<unknown> {
    return Promise.reject(new Error('not in the memory'));
  }

  async close(): Promise<void> {
    return Promise.resolve();
  }

  private async handle<T>(asked: MemoryRequest, act: () => T): Promise<T> {
    this.requests.push(jsonCopy(asked));
    await Promise.resolve();
    await this.before(asked);
    const result = jsonCopy(act());
    await this.after(asked);
    return result;
  }
}

function request(
  verb: MemoryRequest['verb'],
  type: ResourceType,
  ref: api.ObjectRef,
  body: unknown,
  options: object,
): MemoryRequest {
  const { name, namespace } = ref;
  return { verb, type, ref: namespace === undefined ? { name } : { name, namespace }, body, options: { ...options } };
}

function identity({ apiVersion, kind, metadata: { name } }: KubeObject): KubeObject {
  return { apiVersion, kind, metadata: { name } };
}

function patched(live: KubeObject, body: unknown, type: 'merge' | 'json'): Body {
  if (type === 'merge') return mergePatch(live, body) as Body;
  try {
    return jsonPatch(live, body as JsonPatchOperation[]) as Body;
  } catch (error) {
    // A real server responds to a failed test like this.
    throw apiError(422, 'Invalid', errorMessage(error));
  }
}

type Fields = Record<string, unknown>;

/** RFC 7386. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Fields = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, name);
    else if (value !== undefined) result[name] = mergePatch(result[name], value);
  }
  return result;
}

/** One operation of RFC 6902. */
interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  /** A path of fields only; lists are not walked. */
  readonly path: string;
  readonly value?: unknown;
}

/** RFC 6902, as far as paths of fields go. @throws Error when a test fails or a path does not exist */
function jsonPatch(target: object, operations: readonly JsonPatchOperation[]): object {
  const result = jsonCopy(target);
  for (const { op, path, value } of operations) {
    const steps = path
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    const parent = steps.reduce<Fields>((at, step) => at[step] as Fields, result as Fields);
    if (op !== 'add' && !(last in parent))
      throw new Error(`${op} operation does not apply: doc is missing path: "${path}"`);
    if (op === 'test') {
      if (JSON.stringify(parent[last]) !== JSON.stringify(value))
        throw new Error(`testing value ${path} failed: test failed`);
    } else if (op === 'remove') Reflect.deleteProperty(parent, last);
    else parent[last] = jsonCopy(value);
  }
  return result;
}
