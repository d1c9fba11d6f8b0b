import type { KubeObject } from '../../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../../constructs/kube/resource-type';
import { ApiError, type ApiClient, type ObjectRef } from '../../../../operator';
import { refOf } from '../../../../operator/client/api-client';
import type { CreateRequest, DeleteRequest, ProviderRequest, UpdateRequest } from '../engine/provider';
import { PartialError } from '../engine/recorder';
import { applyIgnoreChanges, plainValues, without, type Plain, type Values } from '../engine/values';
import { readinessOf, waitFor, type WaitOptions } from './kubernetes-wait';

/** How objects are written. */
export interface ObjectOptions {
  /** Create takes over what exists. */
  readonly upsert: boolean;
  /** Take fields over from other managers. */
  readonly force: boolean;
  /** Of namespaced objects that say none. */
  readonly defaultNamespace: string;
  /** How long to wait where nobody says. */
  readonly awaitTimeoutMs: number;
}

/** What a CR's CRD, made in the same run, may still need to be served (Creation of provider/pkg/await: five tries, doubling). */
const serveWaitsMs = [0, 500, 1000, 2000, 4000, 8000] as const;

/** Objects of one cluster, written as pulumi-kubernetes 4 does with server-side apply (provider/pkg/await/await.go). */
export class KubernetesObjects {
  private readonly kinds: RestMapper;

  constructor(
    private readonly client: ApiClient,
    private readonly options: ObjectOptions,
  ) {
    this.kinds = new RestMapper(client);
  }

  async create(request: CreateRequest): Promise<{ id: string; outputs: Values }> {
    const inputs = objectOf(request.inputs);
    const type = await this.waitUntilServed(inputs, request);
    const body = this.placed(type, inputs);
    const fieldManager = managerOf(request);
    // Without upsert it is a POST, whose manager the first update turns into the applying one.
    const made = this.options.upsert
      ? await this.client.apply(type, body, { fieldManager, force: this.force(body) })
      : await this.client.create(type, body, { fieldManager: 'pulumi-kubernetes' }).catch(explainExisting);
    const live = await this.ready(type, made, request);
    return { id: idOf(live), outputs: outputsOf(live, fieldManager) };
  }

  async update(request: UpdateRequest): Promise<{ outputs: Values }> {
    const type = await this.known(objectOf(request.oldInputs));
    const old = await this.client.get(type, refOfId(request.id));
    if (old === undefined) throw new Error(`${type.kind} ${request.id} is not in the cluster any more`);
    const ignoring = applyIgnoreChanges(request.inputs, old as unknown as Values, request.ignoreChanges);
    const body = this.placed(type, objectOf(ignoring));
    const fieldManager = managerOf(request);
    const made = isCrd(body) ? await this.put(type, body, old) : await this.apply(type, body, old, fieldManager);
    const live = await this.ready(type, made, request);
    return { outputs: outputsOf(live, fieldManager) };
  }

  async delete(request: DeleteRequest): Promise<void> {
    const object = objectOf(request.inputs);
    const type = await this.kinds.resourceTypeOf(object.apiVersion, object.kind);
    // A kind that is gone took its objects along.
    if (type === undefined) return;
    const ref = refOfId(request.id);
    const policy = object.metadata.annotations?.['pulumi.com/deletionPropagationPolicy'];
    const propagation = policy === 'orphan' ? 'Orphan' : policy === 'background' ? 'Background' : 'Foreground';
    const options = { propagation, signal: request.signal } as const;
    if (!(await this.client.delete(type, ref, options))) return;
    const waiting = this.waiting(type, ref, object, request);
    const { missing } = await waitFor(waiting, (found) => (found === undefined ? true : stillThere(found)));
    if (missing !== undefined) {
      throw new Error(`${type.kind} ${request.id} is still there after ${waiting.timeoutMs / 1000} s: ${missing}`);
    }
  }

  async read(inputs: Values, id: string): Promise<KubeObject | undefined> {
    const object = objectOf(inputs);
    return this.client.get(await this.known(object), refOfId(id));
  }

  private async put(type: ResourceType, body: KubeObject, old: KubeObject): Promise<KubeObject> {
    const resourceVersion = old.metadata.resourceVersion;
    const metadata = { ...body.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    return this.client.update(type, { ...body, metadata }, { fieldManager: 'pulumi-kubernetes' });
  }

  private async apply(type: ResourceType, body: KubeObject, old: KubeObject, manager: string): Promise<KubeObject> {
    await this.takeOverCreation(type, old, manager);
    return this.client.apply(type, body, { fieldManager: manager, force: this.force(body) });
  }

  /** What the POST of a create wrote becomes the applying manager's, or fields that are dropped would stay. */
  private async takeOverCreation(type: ResourceType, old: KubeObject, manager: string): Promise<void> {
    const fields = (
      old.metadata as unknown as { managedFields?: { manager: string; operation: string; subresource?: string }[] }
    ).managedFields;
    const at = fields?.findIndex(
      (entry) =>
        entry.manager === 'pulumi-kubernetes' && entry.operation === 'Update' && entry.subresource === undefined,
    );
    if (fields === undefined || at === undefined || at < 0) return;
    const path = `/metadata/managedFields/${at}`;
    const patch = [
      { op: 'test', path: '/metadata/resourceVersion', value: old.metadata.resourceVersion },
      { op: 'replace', path: `${path}/manager`, value: manager },
      { op: 'replace', path: `${path}/operation`, value: 'Apply' },
    ];
    await this.client.patch(type, refOf(old), patch, { fieldManager: manager, type: 'json' });
  }

  private force(body: KubeObject): boolean {
    return this.options.force || body.metadata.annotations?.['pulumi.com/patchForce'] === 'true';
  }

  private async ready(
    type: ResourceType,
    made: KubeObject,
    request: CreateRequest | UpdateRequest,
  ): Promise<KubeObject> {
    const readiness = readinessOf(made);
    if (readiness === undefined) return made;
    const waiting = this.waiting(type, refOf(made), made, request);
    const { object, missing } = await waitFor(waiting, readiness);
    const live = object ?? made;
    if (missing === undefined) return live;
    const problem = `${type.kind} ${idOf(made)} was written, but is not ready after ${waiting.timeoutMs / 1000} s: ${missing}`;
    throw new PartialError(problem, idOf(live), outputsOf(live, managerOf(request)));
  }

  private waiting(
    type: ResourceType,
    ref: WaitOptions['ref'],
    object: KubeObject,
    request: CreateRequest | DeleteRequest,
  ): WaitOptions {
    const seconds = object.metadata.annotations?.['pulumi.com/timeoutSeconds'];
    const timeoutMs =
      request.timeoutMs ?? (seconds === undefined ? this.options.awaitTimeoutMs : Number(seconds) * 1000);
    return { client: this.client, type, ref, timeoutMs, signal: request.signal };
  }

  private async waitUntilServed(object: KubeObject, request: ProviderRequest): Promise<ResourceType> {
    for (const waitMs of serveWaitsMs) {
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      request.signal.throwIfAborted();
      const found = await this.kinds.resourceTypeOf(object.apiVersion, object.kind);
      if (found !== undefined) return found;
    }
    return this.known(object);
  }

  private async known(object: KubeObject): Promise<ResourceType> {
    const found = await this.kinds.resourceTypeOf(object.apiVersion, object.kind);
    if (found !== undefined) return found;
    throw new Error(
      `the API server has no ${object.kind} of ${object.apiVersion}: verify that any required CRDs have been created`,
    );
  }

  private placed(type: ResourceType, object: KubeObject): KubeObject {
    if (type.scope === 'Cluster' || object.metadata.namespace !== undefined) return object;
    return { ...object, metadata: { ...object.metadata, namespace: this.options.defaultNamespace } };
  }
}

function objectOf(inputs: Values): KubeObject {
  return stripNulls(without(plainValues(inputs), '__fieldManager')) as unknown as KubeObject;
}

/** Pulumi writes what is absent in a list or an output as null. */
function stripNulls(value: Plain): Plain {
  if (Array.isArray(value)) return value.map(stripNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, stripNulls(item)]])),
  );
}

function outputsOf(live: KubeObject, fieldManager: string): Values {
  const metadata = without(live.metadata as unknown as Values, 'managedFields');
  return { ...(live as unknown as Values), metadata, __fieldManager: fieldManager };
}

/** One manager a resource, as the real provider has: here by its URN, so that it is the same in every run. */
function managerOf(request: ProviderRequest): string {
  const old = (request as Partial<UpdateRequest>).oldOutputs?.__fieldManager;
  if (typeof old === 'string') return old;
  let hash = 5381;
  for (const character of request.urn) hash = (hash * 33 + character.codePointAt(0)!) >>> 0;
  return `pulumi-kubernetes-${hash.toString(16).padStart(8, '0')}`;
}

function isCrd(object: KubeObject): boolean {
  return object.kind === 'CustomResourceDefinition' && object.apiVersion.startsWith('apiextensions.k8s.io/');
}

function stillThere(object: KubeObject): string {
  const finalizers = (object.metadata as { finalizers?: readonly string[] }).finalizers ?? [];
  return finalizers.length === 0 ? 'nothing says why' : `finalizers ${finalizers.join(', ')}`;
}

function explainExisting(error: unknown): never {
  if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  throw new Error(
    `${error.message}. The resource already exists in the cluster: use an alias when it was renamed, import it, or set upsertExistingObjects on the provider`,
    { cause: error },
  );
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Which kinds the API server has, asked for once a group and version, and again when one is missing: CRDs come in the same run. */
class RestMapper {
  private readonly known = new Map<string, Promise<readonly ApiResource[]>>();

  constructor(private readonly client: ApiClient) {}

  /** Undefined when the server has no such kind (yet). */
  async resourceTypeOf(apiVersion: string, kind: string): Promise<ResourceType | undefined> {
    const remembered = await this.resources(apiVersion);
    let found = remembered.find((resource) => resource.kind === kind);
    if (found === undefined) {
      this.known.delete(apiVersion);
      found = (await this.resources(apiVersion)).find((resource) => resource.kind === kind);
    }
    return found === undefined ? undefined : typeOf(apiVersion, found);
  }

  private resources(apiVersion: string): Promise<readonly ApiResource[]> {
    const known = this.known.get(apiVersion) ?? discover(this.client, apiVersion);
    this.known.set(apiVersion, known);
    return known;
  }
}

/** All kinds that the API server has, of all groups and versions. */
export async function servedTypes(client: ApiClient): Promise<readonly ResourceType[]> {
  const { versions } = (await client.getPath('/api')) as { versions: string[] };
  const { groups } = (await client.getPath('/apis')) as { groups: { versions: { groupVersion: string }[] }[] };
  const named = groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion));
  const lists = [...versions, ...named].map(async (apiVersion) =>
    (await discover(client, apiVersion)).map((resource) => typeOf(apiVersion, resource)),
  );
  return (await Promise.all(lists)).flat();
}

function typeOf(apiVersion: string, { kind, name, namespaced }: ApiResource): ResourceType {
  return { apiVersion, kind, plural: name, scope: namespaced ? 'Namespaced' : 'Cluster' };
}

/** What the server has of one group and version, without subresources. */
async function discover(client: ApiClient, apiVersion: string): Promise<readonly ApiResource[]> {
  const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  try {
    const list = (await client.getPath(path)) as { resources: ApiResource[] };
    return list.resources.filter((resource) => !resource.name.includes('/'));
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return [];
    throw error;
  }
}

/** The provider's ID of an object: `namespace/name`, or `name`. */
export function idOf(object: KubeObject): string {
  const { name, namespace } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Reads an ID. */
function refOfId(id: string): ObjectRef {
  const slash = id.indexOf('/');
  return slash < 0 ? { name: id } : { namespace: id.slice(0, slash), name: id.slice(slash + 1) };
}
