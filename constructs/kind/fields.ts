/**
 * Fields for a kind's spec: zod schemas that carry their Kubernetes keywords (`x-kubernetes-*`) into the CRD,
 * and reject in zod what the API server rejects. `.optional()`, `.default()`, `.describe()` and `.meta()`
 * keep working on them.
 */
import { z } from 'zod';
import { describeNameRule, maxNameLength, namePattern, type NameFormat } from '../kube/names';
import { serverEnforcedRefinement, withMeta } from './schema/cel';

export { immutable, withRule } from './schema/cel';
export { quantity } from './quantity';

/**
 * A DNS label of at most 63 characters: valid as most names and as the value of a label. Source: RFC 1123.
 */
export function dnsLabel(): z.ZodString {
  return nameField('dns-label');
}

/** A DNS label that starts with a letter: the name of a Service. At most 63 characters. Source: RFC 1035. */
export function dns1035Label(): z.ZodString {
  return nameField('dns-1035-label');
}

/** DNS labels joined by dots, at most 253 characters: the name of a Secret or a Deployment. Source: RFC 1123. */
export function dnsSubdomain(): z.ZodString {
  return nameField('dns-subdomain');
}

function nameField(format: NameFormat): z.ZodString {
  const error = `must be ${describeNameRule({ format })}`;
  return z
    .string()
    .max(maxNameLength({ format }), { error })
    .regex(new RegExp(namePattern(format)), { error });
}

/**
 * A number or a string, such as a port or `25%`. The string has at most `maxLength` characters.
 * @default 253
 */
export function intOrString(
  options: { readonly maxLength?: number } = {},
): z.ZodUnion<readonly [z.ZodInt32, z.ZodString]> {
  const schema = z.union([z.int32(), z.string().max(options.maxLength ?? 253)], {
    error: 'must be an integer or a string',
  });
  return withMeta(schema, { 'x-kubernetes-int-or-string': true });
}

/** How many entries a list may have. CEL needs an upper bound on all that it may read. */
export interface ListLimits {
  readonly maxItems: number;
  /** @default 0 */
  readonly minItems?: number;
}

/** The fields of an item that can be a key of a list map. */
type KeyOf<I extends z.ZodObject> = Extract<keyof z.output<I>, string>;

/**
 * A list whose items are identified by `keys`: several field managers may each own items, and two items with
 * the same keys are rejected. Each key must be a scalar that is required or has a default.
 * Source: KEP-555, `x-kubernetes-list-type: map`.
 */
export function listMap<I extends z.ZodObject>(
  item: I,
  keys: readonly [KeyOf<I>, ...KeyOf<I>[]],
  limits: ListLimits,
): z.ZodArray<I> {
  const keyOf = (value: unknown): string => stableKey(keys.map((key) => (value as Record<string, unknown>)[key]));
  return withMeta(unique(bounded(item, limits), keyOf, keys.join(' and ')), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [...keys],
  });
}

/** A list of distinct scalars. Source: KEP-555, `x-kubernetes-list-type: set`. */
export function listSet<I extends z.ZodType<string | number | boolean>>(item: I, limits: ListLimits): z.ZodArray<I> {
  return withMeta(unique(bounded(item, limits), stableKey, 'value'), { 'x-kubernetes-list-type': 'set' });
}

/** A list that one field manager owns as a whole. Source: KEP-555, `x-kubernetes-list-type: atomic`. */
export function atomicList<I extends z.ZodType>(item: I, limits: ListLimits): z.ZodArray<I> {
  return withMeta(bounded(item, limits), { 'x-kubernetes-list-type': 'atomic' });
}

/** How large a map of strings may be. */
export interface StringMapLimits {
  readonly maxProperties: number;
  /** Longest value, in characters. */
  readonly maxLength: number;
}

/** A map from strings to strings, such as labels. */
export function stringMap(limits: StringMapLimits): z.ZodRecord<z.ZodString, z.ZodString> {
  return mapOf(z.string().max(limits.maxLength), limits);
}

/** A map from strings to values of one schema. */
export function mapOf<V extends z.ZodType>(
  value: V,
  { maxProperties }: { readonly maxProperties: number },
): z.ZodRecord<z.ZodString, V> {
  const schema = serverEnforcedRefinement(
    z.record(z.string(), value),
    (map) => Object.keys(map).length <= maxProperties,
    {
      message: `must have at most ${maxProperties} entries`,
    },
  );
  return withMeta(schema, { maxProperties });
}

/** An object that keeps the fields its schema does not name; elsewhere the server prunes them. */
export function preserveUnknownFields<S extends z.core.$ZodShape>(
  schema: z.ZodObject<S>,
): z.ZodObject<S, z.core.$loose> {
  return withMeta(schema.loose(), { ...schema.meta(), ...PRESERVE_UNKNOWN_FIELDS });
}

/** A value of any JSON type, kept as it is. */
export function anyValue(): z.ZodUnknown {
  return withMeta(z.unknown(), PRESERVE_UNKNOWN_FIELDS);
}

type EmbeddedResource = z.ZodObject<
  {
    apiVersion: z.ZodString;
    kind: z.ZodString;
    metadata: z.ZodOptional<z.ZodObject<z.core.$ZodLooseShape, z.core.$loose>>;
  },
  z.core.$loose
>;

/** A whole Kubernetes object of any kind. The server checks its apiVersion, kind and metadata. Source: KEP-95. */
export function embeddedResource(): EmbeddedResource {
  const schema = z.looseObject({
    apiVersion: z.string().min(1).describe('Group and version of the object, for example apps/v1.'),
    kind: z.string().min(1).describe('Kind of the object, for example Deployment.'),
    metadata: z.looseObject({}).optional().describe('Metadata of the object.'),
  });
  return withMeta(schema, { 'x-kubernetes-embedded-resource': true, ...PRESERVE_UNKNOWN_FIELDS });
}

const PRESERVE_UNKNOWN_FIELDS = { 'x-kubernetes-preserve-unknown-fields': true } as const;

function bounded<I extends z.ZodType>(item: I, { maxItems, minItems }: ListLimits): z.ZodArray<I> {
  const list = z.array(item).max(maxItems);
  return minItems === undefined ? list : list.min(minItems);
}

function unique<I extends z.ZodType>(
  list: z.ZodArray<I>,
  keyOf: (item: unknown) => string,
  what: string,
): z.ZodArray<I> {
  return serverEnforcedRefinement(list, (items) => new Set(items.map(keyOf)).size === items.length, {
    message: `no two entries may have the same ${what}`,
  });
}

function stableKey(value: unknown): string {
  return JSON.stringify(value);
}
