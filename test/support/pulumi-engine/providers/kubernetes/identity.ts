import { ApiError, type ApiClient, type ObjectRef } from '../../../../../operator';
import type { ResourceType } from '../../../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../../../constructs/kube/kube-object';

interface DiscoveredResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Which kinds the API server has, asked for once a group and version, and again when one is missing: CRDs come in the same run. */
export class Kinds {
  private readonly known = new Map<string, Promise<readonly DiscoveredResource[]>>();

  constructor(private readonly client: ApiClient) {}

  /** Undefined when the server has no such kind (yet). */
  async find(apiVersion: string, kind: string): Promise<ResourceType | undefined> {
    const remembered = await this.resources(apiVersion);
    let found = remembered.find((resource) => resource.kind === kind);
    if (found === undefined) {
      this.known.delete(apiVersion);
      found = (await this.resources(apiVersion)).find((resource) => resource.kind === kind);
    }
    return found === undefined ? undefined : typeOf(apiVersion, found);
  }

  private resources(apiVersion: string): Promise<readonly DiscoveredResource[]> {
    const known = this.known.get(apiVersion) ?? discovered(this.client, apiVersion);
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
    (await discovered(client, apiVersion)).map((resource) => typeOf(apiVersion, resource)),
  );
  return (await Promise.all(lists)).flat();
}

function typeOf(apiVersion: string, { kind, name, namespaced }: DiscoveredResource): ResourceType {
  return { apiVersion, kind, plural: name, scope: namespaced ? 'Namespaced' : 'Cluster' };
}

/** What the server has of one group and version, without subresources. */
async function discovered(client: ApiClient, apiVersion: string): Promise<readonly DiscoveredResource[]> {
  const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  try {
    const list = (await client.getPath(path)) as { resources: DiscoveredResource[] };
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
export function refOfId(id: string): ObjectRef {
  const slash = id.indexOf('/');
  return slash < 0 ? { name: id } : { namespace: id.slice(0, slash), name: id.slice(slash + 1) };
}
