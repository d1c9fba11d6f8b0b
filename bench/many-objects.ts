import { HelloApp } from '../constructs/kinds';
import { owned, type ResourceType } from '../constructs/kube/resource-type';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ApiClient } from '../operator/client/api-client';

const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };

/** Field manager of the objects. */
const options = { fieldManager: 'many' };

/** Calls `act` for each item, at most `atOnce` at the same time. The first error ends all. */
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

/**
 * Creates a namespace with `count` HelloApps: `app-0`, `app-1` and so on.
 * @returns them as the server has them
 */
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

/** Deletes the HelloApps and their Deployments, since no garbage collector runs. No operator may run. */
export async function deleteObjects(client: ApiClient, objects: readonly KubeObject[]): Promise<void> {
  await inParallel(objects, 32, async ({ metadata: { name, namespace = '' } }) => {
    await client.delete(HelloApp.type, { namespace, name });
    await client.delete(owned.Deployment, { namespace, name });
  });
}
