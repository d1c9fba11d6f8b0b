import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { QUANTITY_PATTERN, compareQuantities } from '../../constructs/kind/quantity';
import { isObject, type KubeObject } from '../../constructs/kube/kube-object';
import { typeKey } from '../../constructs/kube/resource-type';
import type { UnownedFields } from '../informer/field-ownership';
import type { DroppedFields } from '../informer/field-projection';
import { truncate } from '../process/truncate';

type Fields = Readonly<Record<string, unknown>>;

/** Fields whose values are quantities: the server stores `1000m` as `1`. */
const QUANTITY_MAPS = new Set(['requests', 'limits', 'hard', 'capacity', 'default', 'defaultRequest', 'max', 'min']);

/**
 * Compares a child as it was applied with a live object, without a schema.
 *
 * Fields that only the live object has do not matter here: defaults, other writers' fields and list items. If
 * one of them makes a difference, because it is in a map or list that the API declares atomic, then the operator
 * does not own that map or list any more: see {@link firstUnowned}. A list stands in the live one when its items
 * are there in the same order. Quantities are compared by value.
 */
export class ChildComparison {
  private readonly type: string;

  constructor(
    applied: KubeObject,
    private readonly dropped: DroppedFields,
  ) {
    this.type = typeKey(applied);
  }

  /**
   * Finds where a live object differs from what was applied.
   *
   * @returns the path of the first difference, for logs and conditions; undefined when there is none
   */
  firstDifference(applied: unknown, live: unknown): string | undefined {
    return this.compare(applied, live, '', false)?.replace(/^\./, '');
  }

  /**
   * Finds a field that was applied, that the operator does not own any more, and that has more in it than was
   * applied: somebody else has changed it, or a map or list around it that is atomic. An item of a list needs
   * no more in it.
   *
   * @param standing what was applied, or its stored form, of which `firstDifference` has found no difference
   */
  firstUnowned(standing: unknown, live: unknown, unowned: UnownedFields | undefined): string | undefined {
    return this.unowned(standing, live, unowned, '')?.replace(/^\./, '');
  }

  /**
   * What was applied, in the form in which the server stores it: where the two differ, it has the server's
   * value, or {@link ABSENT}. Defaulting, normalisation (`1024Mi` as `1Gi`) and admission
   * webhooks make them differ. Empty fields that the server drops are learned.
   *
   * @returns undefined when the server stores what was applied
   */
  storedForm<T>(applied: T, stored: unknown): T | undefined {
    this.learnDropped(applied, stored, '');
    return this.firstDifference(applied, stored) === undefined
      ? undefined
      : (this.stored(applied, stored, '', false) as T);
  }

  private compare(applied: unknown, live: unknown, at: string, quantities: boolean): string | undefined {
    if (applied === live || applied === undefined) return undefined;
    if (applied === ABSENT) return isAbsent(live) ? undefined : '';
    if (isAbsent(live)) return isEmpty(applied) && this.dropped.has(this.type, at) ? undefined : deepest(applied);
    if (Array.isArray(applied)) return this.compareLists(applied, live, at);
    if (isObject(applied)) return this.compareMaps(applied, live, at);
    return quantities && sameQuantity(applied, live) ? undefined : '';
  }

  private compareMaps(applied: Fields, live: unknown, at: string): string | undefined {
    if (!isObject(live)) return '';
    const quantities = holdsQuantities(at);
    for (const name in applied) {
      const difference = this.compare(applied[name], live[name], `${at}.${name}`, quantities);
      if (difference !== undefined) return `.${name}${difference}`;
    }
    return undefined;
  }

  private compareLists(applied: readonly unknown[], live: unknown, at: string): string | undefined {
    if (!Array.isArray(live) || (applied.length === 0 && live.length > 0)) return '';
    const missing = this.pair(applied, live, at, () => undefined);
    return missing === undefined ? undefined : this.describeMissing(applied[missing], missing, live, at);
  }

  /**
   * Finds the applied items in a live list, in their order.
   *
   * @param found called with the indexes of an applied item and of the live one
   * @returns the index of the first applied item that is not there
   */
  private pair(
    applied: readonly unknown[],
    live: readonly unknown[],
    at: string,
    found: (applied: number, live: number) => void,
  ): number | undefined {
    let next = 0;
    for (const [i, item] of applied.entries()) {
      while (next < live.length && this.compare(item, live[next], `${at}[]`, false) !== undefined) next++;
      if (next === live.length) return i;
      found(i, next++);
    }
    return undefined;
  }

  /** The path of the difference between an item and the live one of its name, or of the item. */
  private describeMissing(item: unknown, index: number, live: readonly unknown[], at: string): string {
    if (itemKeys(item).length === 0) {
      const inner = this.compare(item, live[index], `${at}[]`, false);
      return index >= live.length || inner === undefined ? '' : `[${String(index)}]${inner}`;
    }
    const other = findLike(item, live);
    const inner = other === undefined ? undefined : this.compare(item, other, `${at}[]`, false);
    return `[${itemName(item, index)}]${inner ?? ''}`;
  }

  private unowned(
    standing: unknown,
    live: unknown,
    unowned: UnownedFields | undefined,
    at: string,
  ): string | undefined {
    if (unowned === undefined || standing === undefined || isAbsent(live)) return undefined;
    if (unowned === true) return isDeepStrictEqual(standing, live) ? undefined : '';
    let path: string | undefined;
    if (Array.isArray(standing) && Array.isArray(live)) {
      this.pair(standing, live, at, (i, j) => {
        if (path !== undefined) return;
        // An item that is not owned as a whole may have a second one of its key beside it.
        const isLost = unowned[String(j)] === true;
        const inner = isLost ? '' : this.unowned(standing[i], live[j], unowned[String(j)], `${at}[]`);
        if (inner !== undefined) path = `[${itemName(standing[i], i)}]${inner}`;
      });
    } else if (isObject(standing) && isObject(live)) {
      for (const name in unowned) {
        const inner = Object.hasOwn(standing, name)
          ? this.unowned(standing[name], live[name], unowned[name], `${at}.${name}`)
          : undefined;
        if (inner !== undefined) return `.${name}${inner}`;
      }
    }
    return path;
  }

  private learnDropped(applied: unknown, stored: unknown, at: string): void {
    if (isAbsent(stored)) {
      if (isEmpty(applied)) this.dropped.add(this.type, at);
    } else if (Array.isArray(applied) && Array.isArray(stored)) {
      for (const [i, item] of storedItems(applied, stored)?.entries() ?? [])
        this.learnDropped(applied[i], item, `${at}[]`);
    } else if (isObject(applied) && isObject(stored)) {
      for (const name in applied) this.learnDropped(applied[name], stored[name], `${at}.${name}`);
    }
  }

  private stored(applied: unknown, stored: unknown, at: string, quantities: boolean): unknown {
    if (this.compare(applied, stored, at, quantities) === undefined) return applied;
    if (isAbsent(stored)) return ABSENT;
    if (Array.isArray(applied) && Array.isArray(stored)) {
      const items = storedItems(applied, stored);
      return items?.map((item, i) => this.stored(applied[i], item, `${at}[]`, false)) ?? stored;
    }
    if (!isObject(applied) || !isObject(stored)) return stored;
    const inner = holdsQuantities(at);
    return Object.fromEntries(
      Object.entries(applied).map(([name, value]) => [name, this.stored(value, stored[name], `${at}.${name}`, inner)]),
    );
  }
}

/** In a stored form: the server has no such field. */
const ABSENT = Symbol('absent');

/** Fields that tell the items of a list apart, for a path that a person reads. Of a group, those that an item has. */
const ITEM_KEYS: readonly (readonly string[])[] = [
  ['mountPath'],
  ['devicePath'],
  ['containerPort', 'protocol'],
  ['port', 'protocol'],
  ['uid'],
  ['name'],
  ['topologyKey', 'whenUnsatisfiable'],
  ['resourceName'],
  ['ip'],
  ['type'],
];

function itemKeys(item: unknown): readonly string[] {
  if (!isObject(item)) return [];
  return ITEM_KEYS.find(([first = '']) => isScalar(item[first]))?.filter((key) => isScalar(item[key])) ?? [];
}

/**
 * The items of a stored list that belong to those that were applied, others left out.
 *
 * @returns undefined when they cannot be told apart
 */
function storedItems(applied: readonly unknown[], stored: readonly unknown[]): readonly unknown[] | undefined {
  const items = applied.map((item, i) =>
    itemKeys(item).length === 0 && applied.length === stored.length ? stored[i] : findLike(item, stored),
  );
  return items.includes(undefined) ? undefined : items;
}

/** The item of a list that has the same keys as another. */
function findLike(item: unknown, list: readonly unknown[]): unknown {
  const keys = itemKeys(item);
  if (keys.length === 0) return undefined;
  return list.find((one) => isObject(one) && keys.every((key) => one[key] === (item as Fields)[key]));
}

/** The item of a list in a path: by its keys, or by its index when it has none. */
export function itemName(item: unknown, index: number): string {
  const keys = itemKeys(item);
  return keys.length === 0 ? String(index) : keys.map((key) => String((item as Fields)[key])).join(',');
}

/** The path within a value to its first field that is no map, or to the first item of a list. */
function deepest(value: unknown): string {
  if (Array.isArray(value)) return itemKeys(value[0]).length === 0 ? '' : `[${itemName(value[0], 0)}]`;
  if (!isObject(value)) return '';
  const first = Object.keys(value).find((name) => value[name] !== undefined);
  return first === undefined ? '' : `.${first}${deepest(value[first])}`;
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** Whether a value may be one that the server drops: maps of nothing but such values are. */
function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.values(value).every((field) => field === undefined || isEmpty(field));
  return value === null || value === '' || value === false || value === 0;
}

/** Whether the values of a map are quantities, by the last name of its field. */
function holdsQuantities(at: string): boolean {
  return QUANTITY_MAPS.has(at.slice(at.lastIndexOf('.') + 1));
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

function sameQuantity(a: unknown, b: unknown): boolean {
  return isQuantity(a) && isQuantity(b) && compareQuantities(a, b) === 0;
}

const QUANTITY = new RegExp(QUANTITY_PATTERN);

function isQuantity(value: unknown): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && QUANTITY.test(value));
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
