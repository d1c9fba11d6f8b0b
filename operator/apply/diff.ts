import { createHash } from 'node:crypto';
import { QUANTITY_PATTERN, compareQuantities } from '../../constructs/kind/quantity';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { truncate } from '../process/truncate';

/**
 * The fields by which the API server tells the items of an associative list apart, by the list's own field name.
 * Source: `x-kubernetes-list-map-keys` in the OpenAPI schema of the built-in types.
 */
const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  ephemeralContainers: ['name'],
  hostAliases: ['ip'],
  imagePullSecrets: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  resizePolicy: ['resourceName'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
  volumeDevices: ['devicePath'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
};

/** Lists of scalars that are sets. */
const SETS = new Set(['finalizers']);

/** Fields whose values are quantities: the server stores `1000m` as `1`. */
const QUANTITY_MAPS = new Set(['requests', 'limits', 'hard', 'capacity', 'default', 'defaultRequest', 'max', 'min']);

type Fields = Readonly<Record<string, unknown>>;

/**
 * Finds where a live object differs from what was applied. Fields that only the live object has (defaults,
 * other writers' fields and list items) do not matter.
 *
 * Guarantees: quantities are compared by value; an empty map or list equals an absent one, as the server
 * drops it.
 *
 * @returns the path of the first difference, for logs and conditions; undefined when there is none
 */
export function firstDifference(applied: unknown, live: unknown): string | undefined {
  return compare(applied, live, '', false)?.replace(/^\./, '');
}

function compare(applied: unknown, live: unknown, field: string, quantities: boolean): string | undefined {
  if (applied === live || applied === undefined) return undefined;
  // The server drops nulls and empty strings.
  if (applied === null || applied === '') return live === undefined ? undefined : '';
  if (Array.isArray(applied)) return compareLists(applied, live, field);
  if (typeof applied === 'object') return compareMaps(applied as Fields, live, field);
  return quantities && sameQuantity(applied, live) ? undefined : '';
}

function compareMaps(applied: Fields, live: unknown, field: string): string | undefined {
  const liveFields = (live ?? {}) as Fields;
  if (typeof liveFields !== 'object') return '';
  const quantities = QUANTITY_MAPS.has(field);
  for (const name in applied) {
    const difference = compare(applied[name], liveFields[name], name, quantities);
    if (difference !== undefined) return `.${name}${difference}`;
  }
  return undefined;
}

function compareLists(applied: readonly unknown[], live: unknown, field: string): string | undefined {
  const items = live === undefined || live === null ? [] : live;
  if (!Array.isArray(items)) return '';
  if (SETS.has(field)) return applied.every((item) => items.includes(item)) ? undefined : '';
  const keys = listKeys(applied, field);
  if (keys === undefined) return compareAtomic(applied, items);
  for (const item of applied as Fields[]) {
    const found = findItem(items as Fields[], item, keys);
    const name = keys.map((key) => String(item[key])).join(',');
    const difference = found === undefined ? '' : compare(item, found, '', false);
    if (difference !== undefined) return `[${name}]${difference}`;
  }
  return undefined;
}

function compareAtomic(applied: readonly unknown[], live: readonly unknown[]): string | undefined {
  if (applied.length !== live.length) return '';
  for (const [i, item] of applied.entries()) {
    const difference = compare(item, live[i], '', false);
    if (difference !== undefined) return `[${String(i)}]${difference}`;
  }
  return undefined;
}

/** `ports` is keyed by `containerPort` in containers and by `port` in Services, each together with the protocol. */
function listKeys(applied: readonly unknown[], field: string): readonly string[] | undefined {
  if (field !== 'ports') return Object.hasOwn(LIST_KEYS, field) ? LIST_KEYS[field] : undefined;
  const first = applied[0] as Fields | undefined;
  if (first?.containerPort !== undefined) return ['containerPort', 'protocol'];
  return first?.port === undefined ? undefined : ['port', 'protocol'];
}

function findItem(items: readonly Fields[], wanted: Fields, keys: readonly string[]): Fields | undefined {
  return items.find((item) => keys.every((key) => sameKey(wanted, item, key)));
}

function sameKey(item: Fields, other: Fields, key: string): boolean {
  const fallback = key === 'protocol' ? 'TCP' : undefined;
  return (item[key] ?? fallback) === (other[key] ?? fallback);
}

function sameQuantity(a: unknown, b: unknown): boolean {
  return isQuantity(a) && isQuantity(b) && compareQuantities(a, b) === 0;
}

const QUANTITY = new RegExp(QUANTITY_PATTERN);

function isQuantity(value: unknown): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && QUANTITY.test(value));
}

/**
 * What was applied, in the form in which the server stores it: where the two differ, it has the server's
 * value, and null where the server has none. Defaulting, normalisation (`1024Mi` as `1Gi`, `false` as absent)
 * and admission webhooks make them differ.
 */
export function toStoredForm(applied: unknown, stored: unknown): unknown {
  return storedForm(applied, stored, '', false);
}

function storedForm(applied: unknown, stored: unknown, field: string, quantities: boolean): unknown {
  if (compare(applied, stored, field, quantities) === undefined) return applied;
  if (stored === undefined || stored === null) return null;
  if (Array.isArray(applied)) return Array.isArray(stored) ? storedList(applied, stored, field) : stored;
  if (!isFields(applied) || !isFields(stored)) return stored;
  const inner = QUANTITY_MAPS.has(field);
  return Object.fromEntries(
    Object.entries(applied).map(([name, value]) => [name, storedForm(value, stored[name], name, inner)]),
  );
}

/**
 * Item by item where the items can be told apart; otherwise the server's list as a whole. An item that the
 * server dropped is left out.
 */
function storedList(applied: readonly unknown[], stored: readonly unknown[], field: string): unknown {
  if (SETS.has(field)) return applied.filter((item) => stored.includes(item));
  const keys = listKeys(applied, field);
  if (keys === undefined) {
    if (applied.length !== stored.length) return stored;
    return applied.map((item, i) => storedForm(item, stored[i], '', false));
  }
  return (applied as Fields[]).flatMap((item) => {
    const found = findItem(stored as Fields[], item, keys);
    return found === undefined ? [] : [storedForm(item, found, '', false)];
  });
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The length of a fingerprint: 22 characters of 6 bits each, so that two texts practically never share one.
 */
const LENGTH = 22;

/**
 * The fingerprint of a rendered child: equal for equal bytes. The child's envelope has it, so that a
 * restarted operator knows what an earlier one applied, fields that are no longer rendered included.
 */
export function childHash(rendered: KubeObject): string {
  return digestOf(JSON.stringify(rendered));
}

/** The fingerprint of a text. */
export function digestOf(text: string): string {
  return truncate(createHash('sha256').update(text).digest('base64url'), LENGTH);
}
