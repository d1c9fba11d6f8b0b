import { PLATFORM_MANAGED_BY } from '../../constructs/operator';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { CliError } from '../errors';

/** Field manager of everything the platform consists of. */
export const PLATFORM_FIELD_MANAGER = PLATFORM_MANAGED_BY;

/** Name of the ConfigMap that lists what an install put there; it stands in the operator's namespace. */
export const INVENTORY_NAME = 'kindred-platform-inventory';

const CONFIG_MAPS: ResourceType = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
};

/** One object of the platform, by name. */
export interface InventoryEntry {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** The entry of an object. */
export function entryOf({ apiVersion, kind, metadata }: KubeObject): InventoryEntry {
  const { name, namespace } = metadata;
  return { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}

/** What two entries of the same object have in common. A version may change, a group may not. */
export function entryKey({ apiVersion, kind, namespace = '', name }: InventoryEntry): string {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return [group, kind, namespace, name].join('|');
}

/**
 * What earlier installs put there.
 *
 * @throws CliError when the inventory cannot be read as one
 */
export async function readInventory(client: ApiClient, namespace: string): Promise<readonly InventoryEntry[]> {
  const found = await client.get(CONFIG_MAPS, { name: INVENTORY_NAME, namespace });
  if (found === undefined) return [];
  const text = (found['data'] as Record<string, string> | undefined)?.['objects'] ?? '';
  try {
    const entries: unknown = JSON.parse(text);
    if (Array.isArray(entries) && entries.every(isEntry)) return entries;
  } catch {
    // Told below, with what to do.
  }
  throw new CliError(
    `ConfigMap ${namespace}/${INVENTORY_NAME} is no inventory: its key "objects" holds no list of objects. ` +
      'Restore it, or delete it; what earlier installs no longer need then stays until you remove it.',
  );
}

/** Records what stands, or may stand. */
export async function writeInventory(
  client: ApiClient,
  namespace: string,
  entries: readonly InventoryEntry[],
): Promise<void> {
  const unique = new Map(entries.map((entry) => [entryKey(entry), entry]));
  const lines = [...unique].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => JSON.stringify(entry));
  const body: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: INVENTORY_NAME,
      namespace,
      labels: {
        'app.kubernetes.io/name': 'kindred',
        'app.kubernetes.io/part-of': 'kindred',
        'app.kubernetes.io/managed-by': PLATFORM_MANAGED_BY,
      },
    },
    data: { objects: `[\n${lines.join(',\n')}\n]` },
  };
  await client.apply(CONFIG_MAPS, body, { fieldManager: PLATFORM_FIELD_MANAGER });
}

function isEntry(value: unknown): value is InventoryEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { apiVersion, kind, name } = value as Record<string, unknown>;
  return [apiVersion, kind, name].every((field) => typeof field === 'string');
}
