import { isDeepStrictEqual } from 'node:util';
import { wireCopy } from './wire-copy';

/** One step of a field path as `FieldsV1` writes it: `f:` a field, `k:` an item by its keys, `v:` a member of a set, `.` an item itself. */
export type Steps = readonly string[];

/** A set of field paths in its nested form. */
export interface FieldsV1 {
  [step: string]: FieldsV1;
}

type Fields = Record<string, unknown>;

/** Written from the OpenAPI document of Kubernetes 1.36, on purpose without a look at the operator's own table. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  conditions: ['type'],
  containers: ['name'],
  env: ['name'],
  initContainers: ['name'],
  ownerReferences: ['uid'],
  volumeMounts: ['mountPath'],
  volumes: ['name'],
};

/** What the server sets itself and nobody owns. */
const UNMANAGED = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'generation',
  'managedFields',
  'name',
  'namespace',
  'resourceVersion',
  'uid',
]);

function keysOf(field: string, item: unknown): readonly string[] | undefined {
  if (field !== 'ports') return KEYS[field];
  const { containerPort, port } = item as Fields;
  if (containerPort !== undefined) return ['containerPort', 'protocol'];
  return port === undefined ? undefined : ['port', 'protocol'];
}

function keyStep(keys: readonly string[], item: unknown): string {
  const values = keys.map((key) => [key, (item as Fields)[key] ?? (key === 'protocol' ? 'TCP' : undefined)]);
  return `k:${JSON.stringify(Object.fromEntries(values))}`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The paths of everything that an object says, as the server tracks them. */
export function pathsOf(object: object, subresource?: string): Steps[] {
  const { metadata, status, ...main } = object as Fields;
  if (subresource === 'status') return below(status, 'status', ['f:status']);
  const managed = Object.fromEntries(Object.entries(metadata as Fields).filter(([name]) => !UNMANAGED.has(name)));
  const ofMetadata = Object.keys(managed).length === 0 ? [] : below(managed, 'metadata', ['f:metadata']);
  return [
    ...ofMetadata,
    ...Object.entries(main)
      .filter(([name]) => name !== 'apiVersion' && name !== 'kind')
      .flatMap(([name, value]) => below(value, name, [`f:${name}`])),
  ];
}

function below(value: unknown, field: string, steps: Steps): Steps[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.length > 0) {
    if (field === 'finalizers') return value.map((member) => [...steps, `v:${JSON.stringify(member)}`]);
    const keys = keysOf(field, value[0]);
    if (keys === undefined) return [steps];
    return value.flatMap((item: unknown) => {
      const at = [...steps, keyStep(keys, item)];
      return [[...at, '.'], ...below(item, '', at)];
    });
  }
  if (!isFields(value) || Object.keys(value).length === 0) return [steps];
  return Object.entries(value).flatMap(([name, inner]) => below(inner, name, [...steps, `f:${name}`]));
}

/** The nested form of paths. */
export function fieldsV1(paths: readonly Steps[]): FieldsV1 {
  const root: FieldsV1 = {};
  for (const steps of paths) {
    let at = root;
    for (const step of steps) at = at[step] ??= {};
  }
  return root;
}

/** The paths of a nested form. */
export function pathsIn(set: FieldsV1, above: Steps = []): Steps[] {
  return Object.entries(set).flatMap(([step, inner]) =>
    Object.keys(inner).length === 0 ? [[...above, step]] : pathsIn(inner, [...above, step]),
  );
}

function itemIn(list: unknown, step: string): unknown {
  if (!Array.isArray(list)) return undefined;
  if (step.startsWith('v:')) return (list as unknown[]).find((member) => `v:${JSON.stringify(member)}` === step);
  const keys = Object.keys(JSON.parse(step.slice(2)) as Fields);
  return (list as unknown[]).find((item) => keyStep(keys, item) === step);
}

/** What stands at a path. */
export function valueOf(object: unknown, steps: Steps): unknown {
  return steps.reduce<unknown>((at, step) => {
    if (step === '.') return at === undefined ? undefined : true;
    return step.startsWith('f:') ? (isFields(at) ? at[step.slice(2)] : undefined) : itemIn(at, step);
  }, object);
}

/** Takes what stands at a path out of an object, and the maps and lists that are empty then. */
export function removeAt(object: unknown, steps: Steps): void {
  const [step, ...rest] = steps;
  if (step === undefined || object === undefined) return;
  if (step.startsWith('f:')) {
    const fields = object as Fields;
    const name = step.slice(2);
    if (rest.length > 0) removeAt(fields[name], rest);
    const left = fields[name];
    if (rest.length === 0 || isDeepStrictEqual(left, {}) || isDeepStrictEqual(left, []))
      Reflect.deleteProperty(fields, name);
    return;
  }
  const list = object as unknown[];
  const item = itemIn(list, step);
  if (item === undefined) return;
  if (rest.length === 0 || rest[0] === '.') list.splice(list.indexOf(item), 1);
  else removeAt(item, rest);
}

/** An applied configuration laid over what stands: maps and keyed lists merge, all else is replaced. */
export function merged(live: unknown, applied: unknown, field = ''): unknown {
  if (Array.isArray(applied)) {
    if (field === 'finalizers') return [...new Set([...((live ?? []) as unknown[]), ...(applied as unknown[])])];
    const keys = applied.length === 0 ? undefined : keysOf(field, applied[0]);
    if (keys === undefined) return wireCopy(applied);
    const items = [...((live ?? []) as unknown[])];
    for (const item of applied as unknown[]) {
      const at = items.findIndex((other) => keyStep(keys, other) === keyStep(keys, item));
      if (at < 0) items.push(wireCopy(item));
      else items[at] = merged(items[at], item);
    }
    return items;
  }
  if (!isFields(applied)) return applied;
  const result: Fields = isFields(live) ? { ...live } : {};
  for (const [name, value] of Object.entries(applied)) {
    if (value !== undefined) result[name] = merged(result[name], value, name);
  }
  return result;
}
