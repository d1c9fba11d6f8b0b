import fc from 'fast-check';
import { ChildComparison } from '../../../operator/apply/diff';
import { DroppedFields } from '../../../operator/informer/field-projection';

interface Fields {
  [name: string]: unknown;
}

const KEYED = new Map([
  ['containers', 'name'],
  ['env', 'name'],
  ['volumeMounts', 'mountPath'],
  ['ownerReferences', 'uid'],
]);

const scalar = fc.oneof(fc.string({ maxLength: 4 }), fc.integer(), fc.boolean());

/** Objects as they are applied: maps, keyed lists, atomic lists, quantities. */
const { object } = fc.letrec<{ value: unknown; object: Fields }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, scalar, fc.array(scalar, { maxLength: 3 }), tie('object')),
  object: fc
    .tuple(
      fc.dictionary(fc.constantFrom('spec', 'a', 'b', 'labels'), tie('value'), { maxKeys: 3 }),
      fc.option(fc.constantFrom(...KEYED.keys()), { nil: undefined }),
      fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('image', 'value'), tie('value'), { maxKeys: 2 }),
    )
    .map(([fields, list, keys, item]) =>
      list === undefined
        ? fields
        : { ...fields, [list]: keys.map((key) => ({ ...item, [KEYED.get(list) ?? '']: key })) },
    ),
}));

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same object after others have added to it: fields everywhere, and items to keyed lists. */
function withAdditions(value: unknown, field: string, seed: number): unknown {
  if (Array.isArray(value)) {
    const key = KEYED.get(field);
    if (key === undefined || value.length === 0) return value.map((item: unknown) => withAdditions(item, '', seed));
    const items = value.map((item: unknown) => withAdditions(item, '', seed));
    const added = { [key]: `added-${String(seed)}` };
    return seed % 2 === 0 ? [added, ...items] : [...items, added];
  }
  if (!isFields(value)) return value;
  const fields = Object.entries(value).map(([name, inner]) => [name, withAdditions(inner, name, seed)] as const);
  return { ...Object.fromEntries(fields), [`added${String(seed)}`]: seed };
}

/** The paths of all scalars. */
function scalars(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (Array.isArray(value)) return value.flatMap((item: unknown, i) => scalars(item, [...path, i]));
  if (isFields(value)) return Object.entries(value).flatMap(([name, inner]) => scalars(inner, [...path, name]));
  return [path];
}

function changed(value: unknown, [step, ...rest]: readonly (string | number)[]): unknown {
  if (step === undefined)
    return typeof value === 'string' ? `${value}!` : typeof value === 'number' ? value + 1 : !(value as boolean);
  if (Array.isArray(value)) return value.map((item: unknown, i) => (i === step ? changed(item, rest) : item));
  return { ...(value as Fields), [step]: changed((value as Fields)[step], rest) };
}

function firstDifference(applied: unknown, live: unknown): string | undefined {
  const of = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
  return new ChildComparison(of, new DroppedFields()).firstDifference(applied, live);
}

describe('any object', () => {
  it('stands in itself plus what others add', () => {
    fc.assert(
      fc.property(object, fc.nat(9), (applied, seed) => {
        expect(firstDifference(applied, withAdditions(applied, '', seed))).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });

  it('does not stand in itself with any one value changed', () => {
    fc.assert(
      fc.property(object, fc.nat(), (applied, at) => {
        const paths = scalars(applied);
        fc.pre(paths.length > 0);
        const path = paths[at % paths.length] ?? [];
        expect(firstDifference(applied, changed(applied, path))).toBeDefined();
      }),
      { numRuns: 2000 },
    );
  });
});
