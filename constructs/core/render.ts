import { ApiObject, App, Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import { RenderError } from './errors';
import type { AnyKind, KindObject } from './kind';
import type { KubeObject, ObjectMeta } from './kube-object';
import { nameProblem } from './names';
import type { SharedChildren } from './ownership';
import { typeKey } from './resource-type';
import type { ResourceType } from './resource-type';
import { describeObject, parseSpec } from './validate';

/** A seeded field of a rendered child whose other writer stands among the children too. */
export interface ActiveSeed {
  readonly path: readonly string[];
  /** See {@link Seed.keep}. */
  readonly keep: (live: unknown) => boolean;
}

/** One rendered child. */
export interface RenderedChild {
  readonly type: ResourceType;
  /** The child as its construct says it, seeded fields included. */
  readonly manifest: KubeObject;
  /** Fields to set at creation and to leave alone afterwards. */
  readonly seeds: readonly ActiveSeed[];
}

/** The children that the objects of one kind share under one key. */
export interface SharedKey {
  readonly group: SharedChildren<never>;
  readonly key: string;
}

/** Refuses to invent names: a generated one would be the same for every object of the kind. */
class ChildrenChart extends Chart {
  override generateObjectName(child: ApiObject): string {
    throw new TypeError(`the ${child.kind} at ${child.node.path} needs a metadata.name`);
  }
}

/**
 * Renders the children of an object: the same bytes for the same kind and object, wherever it is called. Shared children are
 * not among them, see {@link renderShared}.
 *
 * @param object an object of the kind; its spec's defaults need not be applied
 * @throws InvalidObjectError when the spec does not fit the schema
 * @throws RenderError when the kind renders a child it must not
 */
export function renderChildren(kind: AnyKind, object: KubeObject): readonly RenderedChild[] {
  return renderTyped(kind, withDefaults(kind, object));
}

/**
 * An object of a kind with its spec's defaults applied.
 *
 * @throws InvalidObjectError when the spec does not fit the schema
 */
export function withDefaults<K extends AnyKind>(kind: K, object: KubeObject): KindObject<K> {
  return { ...object, spec: parseSpec(kind, object) } as KindObject<K>;
}

/** {@link renderChildren} of an object whose defaults are applied already. */
export function renderTyped<K extends AnyKind>(kind: K, self: KindObject<K>): readonly RenderedChild[] {
  const manifests = synthesize(self, kind.owns, (scope) => {
    kind.children(scope, self);
  });
  return manifests.map(({ type, manifest }) => ({ type, manifest, seeds: activeSeeds(kind, type, manifests) }));
}

/** The shared groups of a kind with the keys that an object names. */
export function sharedKeys<K extends AnyKind>(kind: K, self: KindObject<K>): readonly SharedKey[] {
  return kind.shared.map((group) => ({ group, key: group.key(self) }));
}

/** Renders the children that objects of a namespace share under a key: a function of the key alone. */
export function renderShared(
  kind: AnyKind,
  group: SharedChildren<never>,
  key: string,
  namespace: string | undefined,
): readonly RenderedChild[] {
  const metadata: ObjectMeta = { name: `${group.name} "${key}"`, ...(namespace === undefined ? {} : { namespace }) };
  const standIn = { apiVersion: kind.apiVersion, kind: kind.kind, metadata };
  const manifests = synthesize(standIn, group.owns, (scope) => {
    group.children(scope, key);
  });
  return manifests.map((child) => ({ ...child, seeds: [] }));
}

interface Synthesized {
  readonly type: ResourceType;
  readonly manifest: KubeObject;
}

function synthesize(
  owner: KubeObject,
  owns: readonly ResourceType[],
  addChildren: (scope: Construct) => void,
): readonly Synthesized[] {
  const { namespace } = owner.metadata;
  const subject = describeObject(owner);
  const chart = new ChildrenChart(new App(), 'children', namespace === undefined ? {} : { namespace });
  const seen = new Set<string>();
  return manifestsOf(subject, chart, addChildren).map((manifest) => {
    const type = ownedType(subject, owns, manifest);
    checkIdentity(subject, namespace, type, manifest, seen);
    return { type, manifest };
  });
}

/** All objects below the chart, in the order of the constructs; those within other constructs, such as cdk8s-plus's, included. */
function manifestsOf(subject: string, chart: Chart, addChildren: (scope: Construct) => void): readonly KubeObject[] {
  try {
    addChildren(chart);
    return chart.node
      .findAll()
      .filter((construct) => ApiObject.isApiObject(construct))
      .map((construct) => construct.toJson() as KubeObject);
  } catch (error) {
    throw new RenderError(subject, `its children cannot be rendered: ${messageOf(error)}`, { cause: error });
  }
}

function ownedType(subject: string, owns: readonly ResourceType[], manifest: KubeObject): ResourceType {
  const type = owns.find(({ apiVersion, kind }) => manifest.apiVersion === apiVersion && manifest.kind === kind);
  if (type !== undefined) return type;
  throw new RenderError(
    subject,
    `it renders ${typeKey(manifest)} "${manifest.metadata.name}", which its kind does not own; add the type to \`owns\``,
  );
}

function checkIdentity(
  subject: string,
  namespace: string | undefined,
  type: ResourceType,
  manifest: KubeObject,
  seen: Set<string>,
): void {
  const { name, namespace: actual } = manifest.metadata;
  const problem = nameProblem(name, { format: 'dns-subdomain' });
  if (problem !== undefined) throw new RenderError(subject, `a ${type.kind}'s name is not valid: ${problem}`);
  if (type.scope === 'Namespaced' && actual !== namespace) {
    throw new RenderError(subject, `${type.kind} "${name}" stands in namespace "${actual ?? ''}", not in its owner's`);
  }
  const id = `${typeKey(type)}/${name}`;
  if (seen.has(id)) throw new RenderError(subject, `it renders ${type.kind} "${name}" twice`);
  seen.add(id);
}

function activeSeeds(kind: AnyKind, type: ResourceType, siblings: readonly Synthesized[]): readonly ActiveSeed[] {
  return kind.seeds
    .filter((seed) => isType(seed.of, type) && siblings.some((sibling) => isType(seed.writer, sibling.type)))
    .map(({ path, keep = () => true }) => ({ path, keep }));
}

function isType(a: ResourceType, b: ResourceType): boolean {
  return a === b || typeKey(a) === typeKey(b);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
