import type { Construct } from 'constructs';
import { z } from 'zod';
import { cel } from '../../constructs/kind/schema/cel';
import {
  immutable,
  listMap,
  listSet,
  preserveUnknownFields,
  quantity,
  stringMap,
  withRule,
} from '../../constructs/kind/fields';
import { defineKind, type CommonStatus, type KindObject, type KindSpec } from '../../constructs/kind/kind';
import { validateObject } from '../../constructs/kind/validate';
import { CustomResource } from '../../constructs/crd';

/** Types are checked by `npm run typecheck`; nothing here runs. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the usual test for identical types
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(equal: Equal<A, B>, ...values: readonly unknown[]): void {
  // The argument's type is the check; values are taken so that their types can be asked for.
  String([equal, values]);
}

const item = z.object({ name: z.string(), port: z.int().default(1) });
const schema = withRule(
  z.object({
    amount: immutable(quantity()).optional(),
    items: listMap(item, ['name', 'port'], { maxItems: 3 }).default([]),
    tags: listSet(z.string(), { maxItems: 3 }),
    labels: stringMap({ maxProperties: 3, maxLength: 9 }).optional(),
    open: preserveUnknownFields(z.object({ a: z.int() })).optional(),
    size: z.int().default(1),
  }),
  cel('self.size > 0', 'm'),
  ({ size, amount }) => {
    same<typeof size, number>(true);
    same<typeof amount, string | number | undefined>(true, amount);
    return size > 0;
  },
);

type Output = z.output<typeof schema>;
same<Output['size'], number>(true, schema);
same<Output['items'], { name: string; port: number }[]>(true);
same<Output['tags'], string[]>(true);
same<Output['labels'], Record<string, string> | undefined>(true);
same<z.input<typeof schema>['size'], number | undefined>(true);
same<z.input<typeof schema>['items'], { name: string; port?: number | undefined }[] | undefined>(true);
const open: Output['open'] = { a: 1, b: 'kept' };
same<NonNullable<Output['open']>['a'], number>(true, open);

// @ts-expect-error: a key must be a field of the items
listMap(item, ['nmae'], { maxItems: 3 });
// @ts-expect-error: a list map has at least one key
listMap(item, [], { maxItems: 3 });
// @ts-expect-error: a list has a maximum
listSet(z.string(), {});
// @ts-expect-error: the items of a set are scalars
listSet(z.object({}), { maxItems: 3 });
// @ts-expect-error: the check takes the value of the schema
withRule(z.int(), cel('true', 'm'), (value: string) => value !== '');

const Widget = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
  description: 'A widget.',
  spec: z.object({ image: z.string().describe('I.'), size: z.int().default(1).describe('S.') }),
  status: z.object({ ready: z.int().optional().describe('R.') }),
  owns: [],
  children(_, self) {
    same<typeof self.spec.size, number>(true);
    // @ts-expect-error: no such field
    String(self.spec.colour);
  },
  observe: ({ self }) => ({ ready: self.spec.size }),
});
same<KindSpec<typeof Widget>, { image: string; size?: number | undefined }>(true);
same<KindObject<typeof Widget>['spec'], { image: string; size: number }>(true);

const Optional = defineKind({ ...common(), spec: z.object({ size: z.int().optional().describe('S.') }) });

/** Props of a CustomResource follow from its kind. */
export function resources(scope: Construct): void {
  new CustomResource(scope, 'a', { kind: Widget, spec: { image: 'x' } });
  // @ts-expect-error: image is required
  new CustomResource(scope, 'b', { kind: Widget, spec: { size: 1 } });
  // @ts-expect-error: no such field
  new CustomResource(scope, 'c', { kind: Widget, spec: { image: 'x', colour: 'red' } });
  // @ts-expect-error: a spec with required fields is required
  new CustomResource(scope, 'd', { kind: Widget });
  new CustomResource(scope, 'e', { kind: Optional });
  const object = validateObject(Widget, { apiVersion: '', kind: '', metadata: { name: '' } });
  same<typeof object.spec.size, number>(true, object);
  same<typeof object.status, (Partial<{ ready?: number | undefined }> & CommonStatus) | undefined>(true);
}

function common() {
  const scope = 'Cluster' as const;
  const children = (): void => undefined;
  return {
    group: 'a.b',
    version: 'v1',
    kind: 'Optional',
    plural: 'optionals',
    scope,
    description: 'O.',
    owns: [],
    children,
  };
}
