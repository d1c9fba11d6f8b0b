import { text } from 'node:stream/consumers';
import { convertObject } from '../constructs/kind/conversion';
import type { AnyKind } from '../constructs/kind/kind';
import { renderChildren, renderShared, sharedKeys, type RenderedChild } from '../constructs/kind/render';
import { validateObject } from '../constructs/kind/validate';
import { ConversionError, InvalidObjectError, RenderError } from '../constructs/kube/errors';
import type { KubeObject } from '../constructs/kube/kube-object';
import { nameProblem } from '../constructs/kube/names';
import { groupOf } from '../constructs/kube/resource-type';
import { CliError } from './errors';
import { objectName, parseObjects, readObjects, type SourcedObject } from './objects';
import type { RenderArguments } from './render-arguments';
import { yamlText } from './yaml';

/**
 * `kindred render`: prints the children of objects.
 *
 * @throws CliError naming every object that is not valid, and every field of it that is wrong
 */
export async function render({ files, namespace, output }: RenderArguments, kinds: readonly AnyKind[]): Promise<void> {
  const named = files.filter((file) => file !== '-');
  const own = named.length === files.length ? [] : parseObjects(await text(process.stdin), 'stdin');
  const sourced = [...own, ...(await readObjects(named, ''))];
  if (sourced.length === 0) throw new CliError('stdin holds no objects. Write at least one.');
  process.stdout.write(renderText(renderObjects(sourced, { kinds, namespace }), output));
}

/** An object with what is rendered for it. */
interface RenderedObject {
  readonly object: KubeObject;
  readonly children: readonly RenderedChild[];
  /** The children that it shares with other objects of its kind, by group and key. */
  readonly shared: readonly {
    readonly name: string;
    readonly key: string;
    readonly children: readonly RenderedChild[];
  }[];
  /** Of children that are objects of the kinds themselves: what is rendered for them. */
  readonly below: ReadonlyMap<RenderedChild, RenderedObject>;
}

/** Which kinds are rendered, and where objects are that name no namespace. */
interface RenderObjectsOptions {
  readonly kinds: readonly AnyKind[];
  readonly namespace: string;
}

/**
 * Renders the children of objects.
 *
 * @throws CliError naming every object that is not valid
 * @testonly
 */
export function renderObjects(
  sourced: readonly SourcedObject[],
  options: RenderObjectsOptions,
): readonly RenderedObject[] {
  const problems: string[] = [];
  /** Where an object or a child of its own comes from, by its type and name. */
  const seen = new Map<string, string>();
  const claim = (what: KubeObject, from: string): void => {
    const key = `${what.apiVersion} ${objectName(what)}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, from);
    else
      problems.push(
        `${from}: ${objectName(what)} is there already, from ${first}. Leave one out, or give it another name.`,
      );
  };
  const rendered = sourced.flatMap(({ object, source }) => {
    try {
      const one = renderOne(object, options);
      claim(one.object, source);
      for (const { manifest } of one.children) claim(manifest, `${source}, child of ${objectName(one.object)}`);
      return [one];
    } catch (error) {
      const isExpected = [CliError, InvalidObjectError, ConversionError, RenderError].some(
        (type) => error instanceof type,
      );
      if (!isExpected) throw error;
      problems.push(`${source}: ${(error as Error).message}`);
      return [];
    }
  });
  if (problems.length > 0) throw new CliError(problems.join('\n'));
  return rendered;
}

function renderOne(
  object: KubeObject,
  { kinds, namespace }: RenderObjectsOptions,
  above: readonly AnyKind[] = [],
): RenderedObject {
  const kind = kindOf(object, kinds);
  if (kind === undefined) {
    const known = kinds.map(({ apiVersion, kind: name }) => `${name} of ${apiVersion}`).join(', ');
    throw new CliError(
      `${objectName(object)} is a ${object.kind} of ${object.apiVersion}, which is none of the kinds: ${known}`,
    );
  }
  const given: unknown = object.metadata.namespace;
  const wrong = typeof given === 'string' ? nameProblem(given, { format: 'dns-label' }) : 'it must be a string';
  if (given !== undefined && wrong !== undefined) {
    throw new CliError(`${object.kind} ${object.metadata.name}: metadata.namespace: ${wrong}`);
  }
  const isPlaced = kind.scope === 'Cluster' || object.metadata.namespace !== undefined;
  const placed = isPlaced ? object : { ...object, metadata: { ...object.metadata, namespace } };
  const current = placed.apiVersion === kind.apiVersion ? placed : convertObject(kind, placed, kind.apiVersion);
  const self = validateObject(kind, current);
  const children = renderChildren(kind, current);
  const shared = sharedKeys(kind, self).map(({ group, key }) => ({
    ...{ name: group.name, key },
    children: renderShared(kind, group, key, current.metadata.namespace),
  }));
  const below = new Map<RenderedChild, RenderedObject>();
  for (const child of children) {
    const own = kindOf(child.type, kinds);
    // A kind that owns objects of itself would never end.
    if (own !== undefined && ![...above, kind].includes(own)) {
      below.set(child, renderOne(child.manifest, { kinds, namespace }, [...above, kind]));
    }
  }
  return { object: placed, children, shared, below };
}

/** The kind of an object or a type, in whichever version. */
function kindOf(of: Pick<KubeObject, 'apiVersion' | 'kind'>, kinds: readonly AnyKind[]): AnyKind | undefined {
  return kinds.find(({ kind, group }) => kind === of.kind && group === groupOf(of));
}

/** @testonly */
export function renderText(rendered: readonly RenderedObject[], output: RenderArguments['output']): string {
  if (output === 'tree') return `${rendered.flatMap((one) => treeOf(one)).join('\n')}\n`;
  const manifests = withoutDoubles(rendered);
  if (output === 'json') {
    const items = manifests.map(({ child }) => child.manifest);
    return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 2)}\n`;
  }
  const documents = rendered.flatMap((one) => {
    const own = manifests.filter(({ owner }) => owner === one);
    if (own.length === 0) return [`# ${objectName(one.object)} adds no child.\n`];
    return own.map(({ child, comment }) => `# ${comment}\n${yamlText(child.manifest)}`);
  });
  return documents.join('---\n');
}

interface Manifest {
  readonly owner: RenderedObject;
  readonly child: RenderedChild;
  /** Whose child it is. */
  readonly comment: string;
}

/** All children in their order; one that several objects share stands once. */
function withoutDoubles(rendered: readonly RenderedObject[]): readonly Manifest[] {
  const manifests = new Map<string, Manifest>();
  for (const owner of rendered) {
    const name = objectName(owner.object);
    for (const child of owner.children)
      manifests.set(`${name} ${keyOf(child)}`, { owner, child, comment: `of ${name}` });
    for (const { key, children } of owner.shared) {
      for (const child of children) {
        const comment = `shared by the ${owner.object.kind} objects of "${key}"`;
        if (!manifests.has(keyOf(child))) manifests.set(keyOf(child), { owner, child, comment });
      }
    }
  }
  return [...manifests.values()];
}

function keyOf({ manifest }: RenderedChild): string {
  return `${manifest.apiVersion} ${objectName(manifest)}`;
}

/** The tree as lines. */
function treeOf({ object, children, shared, below }: RenderedObject): readonly string[] {
  const entries = [
    ...children.map((child) => [nameOf(child, seedNote(child)), ...(below.has(child) ? branches(below, child) : [])]),
    ...shared.flatMap(({ key, children: common }) => common.map((child) => [nameOf(child, ` (shared by "${key}")`)])),
  ];
  return [objectName(object), ...entries.flatMap((lines, i) => branch(lines, i === entries.length - 1))];
}

/** The lines below a child that is an object of a kind. */
function branches(below: RenderedObject['below'], child: RenderedChild): readonly string[] {
  const object = below.get(child);
  return object === undefined ? [] : treeOf(object).slice(1);
}

function branch([first = '', ...rest]: readonly string[], isLast: boolean): readonly string[] {
  return [`${isLast ? '└─ ' : '├─ '}${first}`, ...rest.map((line) => `${isLast ? '   ' : '│  '}${line}`)];
}

function nameOf({ manifest: { kind, metadata } }: RenderedChild, note: string): string {
  return `${kind} ${metadata.name}${note}`;
}

function seedNote({ seeds }: RenderedChild): string {
  return seeds.length === 0 ? '' : ` (${seeds.map(({ path }) => path.join('.')).join(', ')} is set at creation only)`;
}
