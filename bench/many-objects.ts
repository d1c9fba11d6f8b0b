import { HelloApp } from '../constructs/kinds';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ApiClient } from '../operator/client/api-client';

const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };

/** Who creates them. */
const options = { fieldManager: 'many' };

/** Does something for each item, so many at once; what one throws ends all. */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  act: (item: T, index: number) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const todo = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of todo) results[index] = await act(item, index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** A new namespace with so many HelloApps, `app-0` and on; returned as they stand on the server. */
export async function createObjects(
  client: ApiClient,
  namespace: string,
  count: number,
): Promise<readonly KubeObject[]> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, options);
  const { type, apiVersion, kind } = HelloApp;
  const numbers = Array.from({ length: count }, (_, i) => i);
  return inParallel(numbers, 32, (i) => {
    const spec = { image: `registry.example.com/app:${String(i)}`, size: 1 };
    return client.create(type, { apiVersion, kind, metadata: { namespace, name: `app-${String(i)}` }, spec }, options);
  });
}

/** Deletes the HelloApps and their Deployments: without a garbage collector nobody else does. No operator may run. */
export async function deleteObjects(client: ApiClient, objects: readonly KubeObject[]): Promise<void> {
  await inParallel(objects, 32, async ({ metadata: { name, namespace = '' } }) => {
    await client.delete(HelloApp.type, { namespace, name });
    await client.delete(owned.Deployment, { namespace, name });
  });
}
