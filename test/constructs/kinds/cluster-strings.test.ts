import fc from 'fast-check';
import { childNodes, walkSchema, type SchemaNode } from '../../../constructs/kind/schema/schema-nodes';
import { provisionerKinds } from '../../../constructs/kinds';

/**
 * What the specs of the provisioner's kinds say ends up in scripts and files on machines. Each string of them, and each key of a map,
 * is found through the schema, so that a new field is held to the same.
 */
const SHELL = Array.from(' \t\n\r\0;|&$<>()"\'`\\*?~#!{}[]^');

/** What a field admits nevertheless: it is quoted in a configuration file and stands in no script. */
const ADMITTED: readonly (readonly [field: RegExp, characters: string])[] = [
  [/[.]schedule$/, ' *?'],
  // The type and the key, as in a file known_hosts.
  [/[.]hostKey$/, ' '],
];

interface Text {
  readonly path: string;
  readonly pattern: string | undefined;
  readonly maxLength: number | undefined;
}

function textOf(node: SchemaNode, path: string): Text | undefined {
  if (node.type !== 'string' || node.enum !== undefined) return undefined;
  return { path, pattern: patternOf(node), maxLength: node.maxLength as number | undefined };
}

/** Its pattern; or that of a rule, where the message had to be for people. */
function patternOf(node: SchemaNode): string | undefined {
  if (node.pattern !== undefined) return node.pattern as string;
  const rules = (node['x-kubernetes-validations'] ?? []) as readonly { readonly rule: string }[];
  return rules.flatMap(({ rule }) => /^self[.]matches\('(.*)'\)$/.exec(rule)?.[1] ?? [])[0];
}

/** The keys of a map have no schema; a rule on the map stands for it. */
function keysOf(node: SchemaNode, path: string): Text | undefined {
  if (node.additionalProperties === undefined) return undefined;
  const rules = (node['x-kubernetes-validations'] ?? []) as readonly { readonly rule: string }[];
  const match = /size\(key\) <= ([0-9]+) && key[.]matches\('(.*)'\)/.exec(rules.map(({ rule }) => rule).join());
  return { path: `${path} (keys)`, pattern: match?.[2], maxLength: match === null ? undefined : Number(match[1]) };
}

function textsOf(root: SchemaNode, path: string): readonly Text[] {
  const found: Text[] = [];
  walkSchema(root, path, ({ node, path: at }) => {
    for (const text of [textOf(node, at), keysOf(node, at)]) if (text !== undefined) found.push(text);
  });
  return found;
}

const texts = provisionerKinds.flatMap((kind) => textsOf(kind.schema.spec, kind.kind));

test('the walk finds them', () => {
  const paths = texts.map(({ path }) => path);
  expect(paths).toContain('Cluster.nodes[].bastion.hostKey');
  expect(paths).toContain('Cluster.nodes[].labels (keys)');
  expect(paths).toContain('Cluster.rke.services.kubelet.extraArgs.*');
  expect(paths).toContain('Kubeconfig.configPath');
  expect(childNodes(provisionerKinds[0]!.schema.spec).length).toBeGreaterThan(5);
});

describe.each(texts.map((text) => [text.path, text] as const))('%s', (_, { path, pattern, maxLength }) => {
  const admitted = ADMITTED.find(([field]) => field.test(path))?.[1] ?? '';
  const refused = SHELL.filter((character) => !admitted.includes(character));

  test('has a pattern, anchored at both ends, and a length', () => {
    expect(pattern).toMatch(/^\^.*\$$/s);
    expect(maxLength).toBeLessThanOrEqual(2048);
  });

  test('admits no character that a shell reads', () => {
    const compiled = new RegExp(pattern!);
    fc.assert(
      fc.property(fc.stringMatching(compiled), fc.constantFrom(...refused), fc.nat(), (valid, character, at) => {
        const position = at % (valid.length + 1);
        return !compiled.test(valid.slice(0, position) + character + valid.slice(position));
      }),
      { numRuns: 200 },
    );
  });

  test('admits nothing that a command would take for an option', () => {
    // The values of arguments stand behind a "=".
    if (/extraArgs[.][*]$|[.]extraArgs[.]\w+[.][*]$/.test(path) || /[.](key)$|keys\)$/.test(path)) return;
    expect('--option').not.toMatch(new RegExp(pattern!));
  });
});
