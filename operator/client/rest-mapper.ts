import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from './api-client';
import { ApiError } from './errors';

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Finds the resource type of any object, with one discovery request for each group and version. */
export class RestMapper {
  private readonly known: Map<string, ResourceType>;
  private readonly discovered = new Map<string, Promise<readonly ApiResource[]>>();

  /** @param known - types that need no discovery */
  constructor(
    private readonly client: Pick<ApiClient, 'getPath'>,
    known: readonly ResourceType[] = [],
  ) {
    this.known = new Map(known.map((type) => [typeKey(type), type]));
  }

  /** The type of an object. Undefined if the server serves no such kind. */
  async find(object: Pick<KubeObject, 'apiVersion' | 'kind'>): Promise<ResourceType | undefined> {
    const known = this.known.get(typeKey(object));
    if (known !== undefined) return known;
    const { apiVersion, kind } = object;
    const found = (await this.resourcesOf(apiVersion)).find((resource) => resource.kind === kind);
    if (found === undefined) return undefined;
    const scope = found.namespaced ? 'Namespaced' : 'Cluster';
    const type: ResourceType = { apiVersion, kind, plural: found.name, scope };
    this.known.set(typeKey(type), type);
    return type;
  }

  /** The kinds that the server serves of a group and version, for example of `apps/v1`. */
  async kindsOf(apiVersion: string): Promise<readonly string[]> {
    return [...new Set((await this.resourcesOf(apiVersion)).map(({ kind }) => kind))];
  }

  private resourcesOf(apiVersion: string): Promise<readonly ApiResource[]> {
    let answer = this.discovered.get(apiVersion);
    if (answer === undefined) {
      answer = this.discover(apiVersion);
      this.discovered.set(apiVersion, answer);
    }
    return answer;
  }

  private async discover(apiVersion: string): Promise<readonly ApiResource[]> {
    try {
      const path = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
      const list = (await this.client.getPath(path)) as { readonly resources?: readonly ApiResource[] };
      // Those with a slash are subresources.
      return (list.resources ?? []).filter(({ name }) => !name.includes('/'));
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return [];
      throw error;
    }
  }
}
