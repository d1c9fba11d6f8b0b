import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { KubeObject } from '../../../../constructs/kube/kube-object';
import type { ProviderPackage } from '../engine/provider';
import { plainValues, without, type Plain, type Values } from '../engine/values';
import { kubernetesProvider, type ObjectStore } from './kubernetes';
import { idOf, type ObjectOptions } from './kubernetes-objects';

/** An object, and who it is. */
type MemoryObject = KubeObject & { readonly metadata: { readonly uid: string } };

/**
 * A cluster in memory, for tests of what goes where: it keeps objects, refuses to make what exists, and takes what is in a namespace along
 * with it, and the objects of a kind with its CRD. It runs nothing: everything is ready at once. Which fields replace an object, and which
 * cluster is meant, is decided as for a real one.
 */
export class MemoryCluster {
  /** By `apiVersion kind namespace/name`. */
  readonly objects = new Map<string, MemoryObject>();
  /** Whether it answers. */
  answers = true;

  /** @param server by which kubeconfigs name it */
  constructor(readonly server: string) {
    this.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
  }

  /** A kubeconfig whose contexts lead to clusters, the first one by itself. */
  static kubeconfig(contexts: Readonly<Record<string, MemoryCluster>>, credential = 'secret-token'): string {
    const names = Object.entries(contexts);
    return JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': names[0]?.[0] },
      contexts: names.map(([name]) => ({ name, context: { cluster: `to-${name}`, user: 'me' } })),
      clusters: names.map(([name, { server }]) => ({
        name: `to-${name}`,
        cluster: { server, ...(server.startsWith('http:') ? { 'insecure-skip-tls-verify': true } : {}) },
      })),
      users: [{ name: 'me', user: { token: credential } }],
    });
  }

  /**
   * A cluster that answers as an API server as far as programs ask it themselves: which kinds there are, reads, and deletions.
   *
   * @param until - ends it when it aborts
   */
  static async serve(until: AbortSignal): Promise<MemoryCluster> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    until.addEventListener('abort', () => server.close(), { once: true });
    const cluster = new MemoryCluster(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on('request', (request, response) => {
      void text(request).then((sent) => {
        const { code, body } = cluster.respond(request.method ?? '', request.url ?? '', sent);
        response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    });
    return cluster;
  }

  /** What stands, but for what every cluster has: `Kind namespace/name`, sorted. */
  get names(): readonly string[] {
    return [...this.objects.values()]
      .map((object) => `${object.kind} ${idOf(object)}`)
      .filter((name) => name !== 'Namespace kube-system')
      .sort();
  }

  /** The UIDs of what stands, by name as in {@link names}. */
  get uids(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      [...this.objects.values()].map((object) => [`${object.kind} ${idOf(object)}`, object.metadata.uid]),
    );
  }

  /** Makes or changes an object, as somebody else does. */
  put(object: KubeObject): MemoryObject {
    const uid = this.objects.get(keyOf(object))?.metadata.uid ?? randomUUID();
    const made = { ...object, metadata: { ...object.metadata, uid } };
    this.objects.set(keyOf(object), made);
    return made;
  }

  /** Takes an object away, with what goes along with it. */
  remove(object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>): void {
    const removed = this.objects.get(keyOf(object));
    if (removed === undefined) return;
    this.objects.delete(keyOf(object));
    const { name } = object.metadata;
    for (const other of this.objects.values()) {
      const isInside = object.kind === 'Namespace' && other.metadata.namespace === name;
      const isOfKind = object.kind === 'CustomResourceDefinition' && crdOf(other, object) === name;
      const isOwned = other.metadata.ownerReferences?.some(({ uid }) => uid === removed.metadata.uid) ?? false;
      if (isInside || isOfKind || isOwned) this.remove(other);
    }
  }

  /** As a provider with those options sees it. */
  store({ upsert }: Pick<ObjectOptions, 'upsert'>): ObjectStore {
    return {
      create: ({ inputs }) =>
        this.asked(() => {
          const object = objectOf(inputs);
          const { namespace } = object.metadata;
          if (namespace !== undefined && !this.has('v1', 'Namespace', namespace)) {
            throw new Error(`namespaces "${namespace}" not found`);
          }
          if (!upsert && this.objects.has(keyOf(object))) {
            throw new Error(
              `${object.kind} ${idOf(object)} already exists. The resource already exists in the cluster`,
            );
          }
          const made = this.put(object);
          return { id: idOf(made), outputs: made as unknown as Values };
        }),
      update: ({ inputs, id }) =>
        this.asked(() => {
          const object = objectOf(inputs);
          if (!this.objects.has(keyOf(object))) throw new Error(`${object.kind} ${id} is not in the cluster any more`);
          return { outputs: this.put(object) as unknown as Values };
        }),
      delete: ({ inputs }) => this.asked(() => this.remove(objectOf(inputs))),
      read: (inputs, id) =>
        this.asked(() =>
          [...this.objects.values()].find(
            (object) => object.apiVersion === inputs.apiVersion && object.kind === inputs.kind && idOf(object) === id,
          ),
        ),
    };
  }

  /** The answer of an API server: its plurals are kinds in lower case with an `s`. */
  private respond(method: string, url: string, body: string): { readonly code: number; readonly body: unknown } {
    const plural = (kind: string): string => `${kind.toLowerCase()}s`;
    const [path = ''] = url.split('?');
    const pathOf = ({ apiVersion }: KubeObject): string =>
      `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`;
    const all = [...this.objects.values()];
    const ofVersion = all.filter((object) => pathOf(object) === path);
    if (ofVersion.length > 0) {
      const resources = new Map(
        ofVersion.map(({ kind, metadata: { namespace } }) => [
          kind,
          { kind, name: plural(kind), namespaced: namespace !== undefined },
        ]),
      );
      return { code: 200, body: { resources: [...resources.values()] } };
    }
    const found = all.find((object) => {
      const { name, namespace } = object.metadata;
      const place = namespace === undefined ? '' : `/namespaces/${namespace}`;
      return `${pathOf(object)}${place}/${plural(object.kind)}/${name}` === path;
    });
    if (found === undefined) return { code: 404, body: { kind: 'Status', reason: 'NotFound', message: 'not found' } };
    if (method !== 'DELETE') return { code: 200, body: found };
    const { preconditions } = JSON.parse(body) as { readonly preconditions?: { readonly uid?: string } };
    if (preconditions?.uid !== found.metadata.uid) {
      return { code: 409, body: { kind: 'Status', reason: 'Conflict', message: 'the UID is another' } };
    }
    this.remove(found);
    return { code: 200, body: { kind: 'Status', status: 'Success' } };
  }

  private has(apiVersion: string, kind: string, name: string): boolean {
    return this.objects.has(keyOf({ apiVersion, kind, metadata: { name } }));
  }

  private asked<T>(work: () => T): Promise<T> {
    if (!this.answers) return Promise.reject(new Error(`configured Kubernetes cluster is unreachable: ${this.server}`));
    return Promise.resolve().then(work);
  }
}

/** The package `kubernetes` for clusters in memory. Each is told by its server. */
export function memoryClusters(...clusters: readonly MemoryCluster[]): ProviderPackage {
  return kubernetesProvider({
    connect: (server, options) => {
      const found = clusters.find((cluster) => cluster.server === server);
      if (found === undefined) throw new Error(`there is no cluster ${server}`);
      return found.store(options);
    },
  });
}

function keyOf({ apiVersion, kind, metadata }: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>): string {
  return `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}

function objectOf(inputs: Values): KubeObject {
  return without<Plain>(plainValues(inputs), '__fieldManager') as unknown as KubeObject;
}

/** The name of the CRD that makes the kind of an object, where it is this one. */
function crdOf({ apiVersion, kind }: KubeObject, crd: object): string | undefined {
  const { spec, metadata } = crd as { spec?: { group: string; names: { kind: string } }; metadata: { name: string } };
  return spec?.names.kind === kind && apiVersion.startsWith(`${spec.group}/`) ? metadata.name : undefined;
}
