import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { managedFieldsOf } from '../../operator/apply/managed-fields';
import { CliError } from '../errors';
import { objectName } from '../object-name';
import { ResourceTypes } from '../resource-types';
import { isCrd, waitUntilServed } from './established';
import {
  PLATFORM_FIELD_MANAGER,
  entryKey,
  entryOf,
  readInventory,
  writeInventory,
  type InventoryEntry,
} from './inventory';

/** What to install, and how. */
export interface InstallOptions {
  readonly client: ApiClient;
  /** The platform's objects in the order of their dependencies, the operator's namespace first if it is among them. */
  readonly objects: readonly KubeObject[];
  /** The operator's namespace, where the inventory stands. */
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/** What an install did. */
export interface Installed {
  readonly applied: readonly KubeObject[];
  /** What an earlier install put there and this one no longer has. */
  readonly pruned: readonly InventoryEntry[];
  /** What was left for a person to remove, and why. */
  readonly kept: readonly { readonly entry: InventoryEntry; readonly why: string }[];
}

/** Deleting one of these deletes what people keep in them. */
const NEVER_PRUNED: Readonly<Record<string, string>> = {
  CustomResourceDefinition: 'deleting it would delete every object of its kind',
  Namespace: 'deleting it would delete everything in it',
};

/**
 * Installs the platform by server-side apply, in the order given; what depends on CRDs waits until they are served. Prunes what an
 * earlier install put there and this one no longer has.
 *
 * Guarantees: repeating it changes nothing; an install that was cut short is completed by the next, since the inventory names an
 * object before it is created; only objects that this field manager has applied are pruned, by UID, never CRDs nor namespaces.
 *
 * @throws CliError naming the object that the server refuses
 */
export async function installPlatform(options: InstallOptions): Promise<Installed> {
  const { client, objects, namespace } = options;
  const types = new ResourceTypes(client);
  const before = await readInventory(client, namespace);
  const entries = objects.map(entryOf);
  const [first] = objects;
  const makesNamespace = first?.kind === 'Namespace' && first.metadata.name === namespace;
  if (makesNamespace) await applyOne(options, types, first);
  await writeInventory(client, namespace, [...before, ...entries]);
  await applyAll(options, types, makesNamespace ? objects.slice(1) : objects);
  const wanted = new Set(entries.map(entryKey));
  const superfluous = before.filter((entry) => !wanted.has(entryKey(entry)));
  const { pruned, kept } = await prune(options, types, superfluous);
  await writeInventory(client, namespace, entries);
  return { applied: objects, pruned, kept };
}

async function applyAll(options: InstallOptions, types: ResourceTypes, objects: readonly KubeObject[]): Promise<void> {
  const unserved: string[] = [];
  for (const object of objects) {
    options.signal.throwIfAborted();
    if (isCrd(object)) unserved.push(object.metadata.name);
    else await served(options, unserved.splice(0));
    await applyOne(options, types, object);
  }
  await served(options, unserved);
}

async function served({ client, signal }: InstallOptions, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => waitUntilServed(client, name, signal)));
}

async function applyOne({ client, signal }: InstallOptions, types: ResourceTypes, object: KubeObject): Promise<void> {
  const type = await types.of(object);
  try {
    await client.apply(type, object, { fieldManager: PLATFORM_FIELD_MANAGER, signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new CliError(
      `the platform cannot be installed: ${objectName(object)} was refused by ${client.server}: ${error.message}`,
      { cause: error },
    );
  }
}

async function prune(
  options: InstallOptions,
  types: ResourceTypes,
  entries: readonly InventoryEntry[],
): Promise<Pick<Installed, 'pruned' | 'kept'>> {
  const pruned: InventoryEntry[] = [];
  const kept: Installed['kept'][number][] = [];
  // What was created last goes first.
  for (const entry of entries.toReversed()) {
    const why = NEVER_PRUNED[entry.kind] ?? (await pruneOne(options, types, entry));
    if (why === undefined) pruned.push(entry);
    else kept.push({ entry, why });
  }
  return { pruned, kept };
}

/** @returns why the object was left alone */
async function pruneOne(
  { client, signal }: InstallOptions,
  types: ResourceTypes,
  entry: InventoryEntry,
): Promise<string | undefined> {
  const type = await types.of(entry);
  const live = await client.get(type, entry, { signal });
  if (live?.metadata.uid === undefined) return undefined;
  const ours = managedFieldsOf(live).some(({ manager }) => manager === PLATFORM_FIELD_MANAGER);
  if (!ours) return `it is no longer the platform's: ${PLATFORM_FIELD_MANAGER} manages none of its fields`;
  await client.delete(type, entry, { uid: live.metadata.uid, signal });
  return undefined;
}
