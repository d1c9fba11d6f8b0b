import { setTimeout as delay } from 'node:timers/promises';
import { breakingChanges, type BreakingChange } from '../constructs/crd';
import type { Condition, KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { PLATFORM_MANAGED_BY } from '../constructs/operator';
import { managedFieldsOf } from '../operator/informer/field-ownership';
import type { ApiClient } from '../operator/client/api-client';
import { ApiError } from '../operator/client/errors';
import { RestMapper } from '../operator/client/rest-mapper';
import { CliError } from './errors';
import { objectName, resourceTypeOf } from './objects';

/** What to install, and where. */
interface InstallOptions {
  readonly client: ApiClient;
  /** The platform's objects in the order of their dependencies, the operator's namespace first if it is among them. */
  readonly objects: readonly KubeObject[];
  /** The operator's namespace, which contains the inventory. */
  readonly namespace: string;
  /** Keep a list of what was installed, and delete what this install no longer has. @default true */
  readonly prunes?: boolean;
  /** Receives what a CRD breaks that takes the place of another one: lines for the user. @default they are not compared */
  readonly onBreakingChanges?: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Result of an install. */
interface InstallResult {
  readonly applied: readonly KubeObject[];
  /** Objects of an earlier install that this one no longer has; they were deleted. */
  readonly pruned: readonly InventoryEntry[];
  /** Objects that were left for the user to remove, and why. */
  readonly kept: readonly { readonly entry: InventoryEntry; readonly why: string }[];
}

/**
 * Installs the platform by server-side apply, in the given order. Objects that need CRDs wait until these are
 * served. Prunes objects of an earlier install that this one no longer has.
 *
 * Guarantees: a repeated install changes nothing. The next install completes one that was interrupted, since
 * an object is in the inventory before it is created. Only objects that this field manager has applied are
 * pruned, by UID; CRDs and namespaces never are.
 *
 * @throws CliError naming the object that the server rejects
 */
export async function installPlatform(options: InstallOptions): Promise<InstallResult> {
  const { client, objects, namespace, prunes = true } = options;
  const types = new RestMapper(client);
  if (!prunes) {
    await applyAll(options, types, objects);
    return { applied: objects, pruned: [], kept: [] };
  }
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

/** Field manager of everything the platform consists of. */
const PLATFORM_FIELD_MANAGER = PLATFORM_MANAGED_BY;

async function applyAll(options: InstallOptions, types: RestMapper, objects: readonly KubeObject[]): Promise<void> {
  const unserved: string[] = [];
  for (const object of objects) {
    options.signal.throwIfAborted();
    if (isCrd(object)) unserved.push(object.metadata.name);
    else await waitUntilAllServed(options, unserved.splice(0));
    await applyOne(options, types, object);
  }
  await waitUntilAllServed(options, unserved);
}

async function waitUntilAllServed({ client, signal }: InstallOptions, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => waitUntilServed(client, name, signal)));
}

async function applyOne(options: InstallOptions, types: RestMapper, object: KubeObject): Promise<void> {
  const { client, signal, onBreakingChanges } = options;
  const type = await resourceTypeOf(types, object);
  const compared = onBreakingChanges !== undefined && isCrd(object);
  try {
    const before = compared ? await client.get(type, object.metadata, { signal }) : undefined;
    await client.apply(type, object, { fieldManager: PLATFORM_FIELD_MANAGER, signal });
    const changes = before === undefined ? [] : breakingChanges(before, object);
    if (changes.length > 0) onBreakingChanges?.(breakingText(object, changes));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const advice = error.message.includes('status.storedVersions')
      ? '\nObjects may be stored in that version. Keep it (served: false hides it from clients), or store all objects anew first: docs/operating.md, "Dropping a version of a kind".'
      : '';
    throw new CliError(
      `the platform cannot be installed: ${objectName(object)} was refused by ${client.server}: ${error.message}${advice}`,
      { cause: error },
    );
  }
}

/** What a CRD breaks that took the place of another one, for the user. */
function breakingText({ metadata: { name } }: KubeObject, changes: readonly BreakingChange[]): string {
  return [
    `Breaking changes of the CRD ${name}, for objects and clients that are there already:`,
    ...changes.map(({ path, message }) => `  ${path}: ${message}`),
  ].join('\n');
}

/** Kinds whose deletion would delete users' objects too. */
const NEVER_PRUNED: Readonly<Record<string, string>> = {
  CustomResourceDefinition: 'deleting it would delete every object of its kind',
  Namespace: 'deleting it would delete everything in it',
};

async function prune(
  options: InstallOptions,
  types: RestMapper,
  entries: readonly InventoryEntry[],
): Promise<Pick<InstallResult, 'pruned' | 'kept'>> {
  const pruned: InventoryEntry[] = [];
  const kept: InstallResult['kept'][number][] = [];
  // In the reverse order of their creation.
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
  types: RestMapper,
  entry: InventoryEntry,
): Promise<string | undefined> {
  const type = await resourceTypeOf(types, entry);
  const live = await client.get(type, entry, { signal });
  if (live?.metadata.uid === undefined) return undefined;
  const ours = managedFieldsOf(live).some(({ manager }) => manager === PLATFORM_FIELD_MANAGER);
  if (!ours) return `it is no longer the platform's: ${PLATFORM_FIELD_MANAGER} manages none of its fields`;
  await client.delete(type, entry, { uid: live.metadata.uid, signal });
  return undefined;
}

/**
 * Name of the ConfigMap, in the operator's namespace, that lists the objects of an install.
 *
 * @testonly
 */
export const INVENTORY_NAME = 'kindred-platform-inventory';

const CONFIG_MAPS: ResourceType = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  scope: 'Namespaced',
};

/** One object of the platform, by name. */
interface InventoryEntry {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** The entry of an object. */
function entryOf({ apiVersion, kind, metadata }: KubeObject): InventoryEntry {
  const { name, namespace } = metadata;
  return { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}

/** A key that is the same for all entries of an object. Its version may change, its group may not. */
function entryKey({ apiVersion, kind, namespace = '', name }: InventoryEntry): string {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return [group, kind, namespace, name].join('|');
}

/**
 * The objects of earlier installs.
 *
 * @throws CliError when the inventory cannot be parsed
 */
async function readInventory(client: ApiClient, namespace: string): Promise<readonly InventoryEntry[]> {
  const found = await client.get(CONFIG_MAPS, { name: INVENTORY_NAME, namespace });
  if (found === undefined) return [];
  const text = (found['data'] as Record<string, string> | undefined)?.['objects'] ?? '';
  try {
    const entries: unknown = JSON.parse(text);
    if (Array.isArray(entries) && entries.every(isEntry)) return entries;
  } catch {
    // Reported below, with what to do.
  }
  throw new CliError(
    `ConfigMap ${namespace}/${INVENTORY_NAME} is no inventory: its key "objects" holds no list of objects. ` +
      'Restore it, or delete it; what earlier installs no longer need then stays until you remove it.',
  );
}

/** Records the objects that exist or may exist. */
async function writeInventory(client: ApiClient, namespace: string, entries: readonly InventoryEntry[]): Promise<void> {
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

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

const servedTimeoutMs = 30_000;
const pollIntervalMs = 50;

interface CrdLike extends KubeObject {
  readonly spec?: {
    readonly group: string;
    readonly scope: ResourceType['scope'];
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** Whether an object is a CRD. */
function isCrd({ kind }: KubeObject): boolean {
  return kind === CRDS.kind;
}

/**
 * Waits until the server serves the kind of a CRD. `Established` alone is not enough: the server may take a
 * moment longer.
 *
 * @throws CliError when the server does not accept the CRD's names, or not in time
 */
async function waitUntilServed(client: ApiClient, name: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + servedTimeoutMs;
  for (;;) {
    const crd: CrdLike | undefined = await client.get(CRDS, { name }, { signal });
    const problem = crdProblem(crd) ?? (await discoveryProblem(client, crd, signal));
    if (problem === undefined) return;
    if (Date.now() > deadline) {
      throw new CliError(
        `CRD ${name} is not served after ${servedTimeoutMs / 1000} s: ${problem}. Look at: kubectl describe crd ${name}`,
      );
    }
    await delay(pollIntervalMs, undefined, { signal });
  }
}

function crdProblem(crd: CrdLike | undefined): string | undefined {
  if (crd === undefined) return 'it is gone';
  const conditions = crd.status?.conditions ?? [];
  const refused = conditions.find(({ type, status }) => type === 'NamesAccepted' && status === 'False');
  if (refused !== undefined) return `its names are taken: ${refused.message}`;
  const established = conditions.find(({ type }) => type === 'Established');
  return established?.status === 'True' ? undefined : (established?.message ?? 'the server has not looked at it yet');
}

async function discoveryProblem(
  client: ApiClient,
  crd: CrdLike | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const spec = crd?.spec;
  if (spec === undefined) return undefined;
  const { group, scope, names } = spec;
  for (const version of spec.versions.filter(({ served }) => served)) {
    const type = { apiVersion: `${group}/${version.name}`, kind: names.kind, plural: names.plural, scope };
    try {
      await client.list(type, { limit: 1, signal });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return `${type.apiVersion} ${type.plural} answers 404`;
      throw error;
    }
  }
  return undefined;
}
