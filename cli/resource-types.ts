import type { KubeObject } from '../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../constructs/kube/resource-type';
import type { ApiClient } from '../operator/client/api-client';
import { ApiError } from '../operator/client/errors';
import { CliError } from './errors';

interface WireResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Finds the resource type of any object, by asking the server once for each group and version. */
export class ResourceTypes {
  private readonly known: Map<string, ResourceType>;
  private readonly asked = new Map<string, Promise<readonly WireResource[]>>();

  /** @param known - types that need no asking */
  constructor(
    private readonly client: Pick<ApiClient, 'getPath'>,
    known: readonly ResourceType[] = [],
  ) {
    this.known = new Map(known.map((type) => [typeKey(type), type]));
  }

  /**
   * The type of an object.
   *
   * @throws CliError when the server serves no such kind
   */
  async of(object: Pick<KubeObject, 'apiVersion' | 'kind'>): Promise<ResourceType> {
    const known = this.known.get(typeKey(object));
    if (known !== undefined) return known;
    const { apiVersion, kind } = object;
    const resources = await this.resourcesOf(apiVersion);
    const found = resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
    if (found === undefined) throw new CliError(unknownKind(apiVersion, kind, resources));
    const scope = found.namespaced ? 'Namespaced' : 'Cluster';
    const type: ResourceType = { apiVersion, kind, plural: found.name, scope };
    this.known.set(typeKey(type), type);
    return type;
  }

  private resourcesOf(apiVersion: string): Promise<readonly WireResource[]> {
    let answer = this.asked.get(apiVersion);
    if (answer === undefined) {
      answer = this.ask(apiVersion);
      this.asked.set(apiVersion, answer);
    }
    return answer;
  }

  private async ask(apiVersion: string): Promise<readonly WireResource[]> {
    try {
      const path = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
      const list = (await this.client.getPath(path)) as { readonly resources?: readonly WireResource[] };
      return list.resources ?? [];
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return [];
      throw error;
    }
  }
}

function unknownKind(apiVersion: string, kind: string, resources: readonly WireResource[]): string {
  const kinds = [...new Set(resources.filter(({ name }) => !name.includes('/')).map((resource) => resource.kind))];
  const there = kinds.length === 0 ? `nothing of ${apiVersion}` : `${kinds.length} other kinds of it`;
  return `the API server serves no ${kind} of ${apiVersion}; it serves ${there}. Check apiVersion and kind (kubectl api-resources lists them).`;
}
