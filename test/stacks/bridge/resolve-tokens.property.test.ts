import * as pulumi from '@pulumi/pulumi';
import { ApiObject } from 'cdk8s';
import fc from 'fast-check';
import { ConstructResources, outputs } from '../../../stacks/bridge';
import { UNKNOWN, named, run, wrapped } from './engine';

/** How a value gets into the props, and what is to be registered for it. */
type Place = {
  readonly how: 'plain' | 'raw' | 'text' | 'number' | 'within' | 'base64' | 'digits';
  readonly secret: boolean;
  readonly value: string | number;
};

interface Leaf {
  readonly leaf: Place;
}

type Tree = Leaf | readonly Tree[] | { readonly [key: string]: Tree };

const word = fc.string({ maxLength: 12 }).map((text) => `v${text}`);
// Plain numbers of the range that stands for Outputs are refused.
const number = fc.integer().filter((n) => n < 2_100_000_000 || n >= 2_147_000_000);
const place: fc.Arbitrary<Leaf> = fc
  .oneof(
    fc.record({ how: fc.constantFrom('plain', 'raw', 'text', 'within', 'base64'), secret: fc.boolean(), value: word }),
    fc.record({ how: fc.constantFrom('plain', 'raw', 'number', 'digits'), secret: fc.boolean(), value: number }),
  )
  .map((leaf) => ({ leaf: leaf }));
const key = fc.string({ minLength: 1, maxLength: 6 }).filter((text) => text !== '__proto__' && text !== 'leaf');

const trees = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    place,
    fc.dictionary(key, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
})).tree;

function isLeaf(tree: Tree): tree is Leaf {
  return !Array.isArray(tree) && Object.hasOwn(tree, 'leaf');
}

function map(tree: Tree, leaf: (place: Place) => unknown): unknown {
  if (isLeaf(tree)) return leaf(tree.leaf);
  if (Array.isArray(tree)) return (tree as readonly Tree[]).map((item) => map(item, leaf));
  return Object.fromEntries(
    Object.entries(tree as Record<string, Tree>).map(([name, field]) => [name, map(field, leaf)]),
  );
}

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

/** The value as it is written into props; `source` gives the Output of a value. */
function written(
  { how, secret, value }: Place,
  source: (value: string | number) => pulumi.Output<string | number>,
): unknown {
  if (how === 'plain') return value;
  const output = secret ? pulumi.secret(source(value)) : source(value);
  const text = (): string => outputs.text(output as pulumi.Output<string>);
  const digits = (): number => outputs.number(output as pulumi.Output<number>);
  switch (how) {
    case 'raw':
      return output;
    case 'text':
      return text();
    case 'number':
      return digits();
    case 'within':
      return `http://${text()}:80/${text()}`;
    case 'base64':
      return base64(`user:${text()}`);
    case 'digits':
      return `port=${digits()}`;
  }
}

function value({ how, value: plain }: Place): unknown {
  switch (how) {
    case 'within':
      return `http://${plain}:80/${plain}`;
    case 'base64':
      return base64(`user:${plain}`);
    case 'digits':
      return `port=${plain}`;
    default:
      return plain;
  }
}

async function registered(
  tree: Tree,
  preview: boolean,
  source: (value: string | number) => pulumi.Output<string | number>,
): Promise<unknown> {
  const registrations = await run(
    () =>
      new ConstructResources('tree', {
        build: (chart) => {
          new ApiObject(chart, 'object', {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'object', namespace: 'default' },
            body: { tree: map(tree, (leaf) => written(leaf, source)) },
          });
        },
      }),
    { preview },
  );
  return (named(registrations, 'tree/object').object['body'] as { tree: unknown }).tree;
}

describe('places for Outputs', () => {
  it('hold the values, secret at exactly the leaves that are', async () => {
    await fc.assert(
      fc.asyncProperty(trees, fc.boolean(), async (tree, preview) => {
        const expected = map(tree, (leaf) =>
          leaf.secret && leaf.how !== 'plain' ? wrapped(value(leaf)) : value(leaf),
        );
        expect(await registered(tree, preview, (plain) => pulumi.output(plain))).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });

  it('are unknown in a preview at exactly the leaves that are', async () => {
    const unknown = (): pulumi.Output<string> => pulumi.output(pulumi.unknown as string);
    await fc.assert(
      fc.asyncProperty(trees, async (tree) => {
        const expected = map(tree, (leaf) => (leaf.how === 'plain' ? leaf.value : UNKNOWN));
        expect(await registered(tree, true, unknown)).toEqual(expected);
      }),
      { numRuns: 100 },
    );
  });
});
