import { Engine, MemoryCluster, memoryClusters } from '../support/pulumi-engine';
import type { ProviderPackage, Value } from '../support/pulumi-engine';

const SERVER = 'https://127.0.0.1:1';
/** Those of others, in which a program makes objects. */
const NAMESPACES = ['default', 'shop'];

/** A kubeconfig of the cluster of an {@link ObservedCluster}. */
export const KUBECONFIG = MemoryCluster.kubeconfig({ a: new MemoryCluster(SERVER) });

/** What stands in an {@link ObservedCluster} besides what a program makes, and how fast it is. */
export interface ObservedClusterOptions {
  /** Names of CRDs that a program may read. @default none */
  readonly crds?: readonly string[];
  /** What creating an object waits for, by the name of its resource. @default nothing */
  readonly slow?: (name: string) => Promise<void>;
  /** The state that an earlier engine exported, and its cluster. @default none, and a new one */
  readonly before?: { readonly state: string; readonly cluster: MemoryCluster };
}

/** A cluster in memory, with what a program did to it. */
export class ObservedCluster {
  /** What was done to objects, as `op name`, in that order. */
  readonly done: string[] = [];
  readonly engine: Engine;
  readonly cluster: MemoryCluster;

  constructor({ crds = [], slow = () => Promise.resolve(), before }: ObservedClusterOptions = {}) {
    const cluster = before?.cluster ?? new MemoryCluster(SERVER);
    this.cluster = cluster;
    for (const name of NAMESPACES) cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const name of crds)
      cluster.put({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name } });
    const clusters = memoryClusters(cluster);
    const did = (op: string, name: string): number => this.done.push(`${op} ${name}`);
    const kubernetes: ProviderPackage = {
      ...clusters,
      configure: async (config: Readonly<Record<string, Value>>) => {
        const provider = await clusters.configure({ kubeconfig: KUBECONFIG, ...config });
        return {
          ...provider,
          create: async (request) => {
            did('create', request.name);
            await slow(request.name);
            return provider.create(request);
          },
          update: (request) => {
            did('update', request.name);
            return provider.update!(request);
          },
          delete: (request) => {
            did('delete', request.name);
            return provider.delete(request);
          },
        };
      },
    };
    this.engine = new Engine({ providers: [kubernetes], ...(before === undefined ? {} : { state: before.state }) });
  }
}
