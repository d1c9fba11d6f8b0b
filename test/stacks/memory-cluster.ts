import { Engine, kubernetesProvider } from '../support/pulumi-engine';
import type { ProviderPackage, Value } from '../support/pulumi-engine';

/** A kubeconfig of a cluster that nobody asks. */
export const KUBECONFIG = JSON.stringify({
  ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a' },
  contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'a', user: { token: 'none' } }],
});

/** What stands in a {@link MemoryCluster} besides what a program makes, and how fast it is. */
export interface MemoryClusterOptions {
  /** CRDs that a program may read. @default none */
  readonly crds?: readonly string[];
  /** What creating an object waits for, by the name of its resource. @default nothing */
  readonly slow?: (name: string) => Promise<void>;
}

/** A cluster in memory, which keeps what it is given. What changes and what is replaced is decided as for a real one. */
export class MemoryCluster {
  /** What was done to objects, as `op name`, in that order. */
  readonly done: string[] = [];
  readonly engine: Engine;

  constructor({ crds = [], slow = () => Promise.resolve() }: MemoryClusterOptions = {}) {
    const real = kubernetesProvider();
    const did = (op: string, name: string): number => this.done.push(`${op} ${name}`);
    const kubernetes: ProviderPackage = {
      ...real,
      configure: async (config: Readonly<Record<string, Value>>) => ({
        ...(await real.configure({ kubeconfig: KUBECONFIG, ...config })),
        create: async ({ name, inputs }) => {
          did('create', name);
          await slow(name);
          return { id: name, outputs: inputs };
        },
        update: ({ name, inputs }) => {
          did('update', name);
          return Promise.resolve({ outputs: inputs });
        },
        delete: ({ name }) => {
          did('delete', name);
          return Promise.resolve();
        },
        read: ({ id, inputs }) => Promise.resolve(crds.includes(id) ? { inputs, outputs: inputs } : undefined),
      }),
    };
    this.engine = new Engine({ providers: [kubernetes] });
  }
}
