import { ApiObject, App, Chart } from 'cdk8s';
import type { Construct, IConstruct } from 'constructs';
import { COMPLETED_ANNOTATION } from '../kube/envelope';
import { errorMessage, RenderError } from '../kube/errors';
import { callKindFunction } from '../kube/function-error';
import type { AnyKind, KindObject } from './kind';
import type { KubeObject, ObjectMeta } from '../kube/kube-object';
import { nameProblem } from '../kube/names';
import type { SharedChildren } from './kind-props';
import { checkListKeys } from './list-keys';
import { typeKey, type ResourceType } from '../kube/resource-type';
import { assertPure } from './purity';
import { isSecret, toStoredSecret } from './secret-data';
import { checkServerFields } from './server-fields';
import { withoutStatusForKey, withStatusForChildren, type StatusReadListener } from './status-access';
import { describeObject, parseSpec } from './validate';

/** One rendered child. */
export interface RenderedChild {
  readonly type: ResourceType;
  /**
   * The child as its construct renders it, seeded fields included; but a Secret as the server stores it, with
   * `stringData` encoded in `data`.
   */
  readonly manifest: KubeObject;
  /** Fields to set at creation and to leave alone afterwards. */
  readonly seeds: readonly ActiveSeed[];
}

/** A seeded field of a rendered child whose other writer is among the children too. */
export interface ActiveSeed {
  readonly path: readonly string[];
  /** See {@link Seed.keep}. */
  readonly keep: (live: unknown) => boolean;
}

/** How children are rendered. */
export interface RenderOptions {
  /**
   * Whether a text stands for a value that is not known yet, so that it need not have the form of the value.
   * @default none does
   */
  readonly isPlaceholder?: (text: string) => boolean;
}

/**
 * Renders the children of an object: the same bytes for the same kind and object, wherever it is called. Shared children are
 * not among them, see {@link renderShared}. They are rendered twice, to find out what depends on anything but the object.
 *
 * @param object an object of the kind; its spec's defaults need not be applied
 * @throws InvalidObjectError when the spec does not fit the schema
 * @throws RenderError when the kind renders a child it must not; ImpureError when the two renderings differ
 */
export function renderChildren(
  kind: AnyKind,
  object: KubeObject,
  options: RenderOptions = {},
): readonly RenderedChild[] {
  const self = withDefaults(kind, object);
  const children = renderDefaulted(kind, self, options);
  assertPureChildren(kind, self, children, options);
  return children;
}

/**
 * Checks that what was rendered depends on the object alone, see {@link assertPure}.
 *
 * @throws ImpureError when it does not
 */
export function assertPureChildren<K extends AnyKind>(
  kind: K,
  self: KindObject<K>,
  children: readonly RenderedChild[],
  options: RenderOptions = {},
): void {
  const again = (): readonly RenderedChild[] => renderDefaulted(kind, self, options);
  assertPure(describeObject(self), { name: `${kind.kind}.children`, from: 'object' }, children, again);
}

/**
 * An object of a kind with its spec's defaults applied.
 *
 * @throws InvalidObjectError when the spec does not fit the schema
 */
export function withDefaults<K extends AnyKind>(kind: K, object: KubeObject): KindObject<K> {
  return { ...withoutRecord(object), spec: parseSpec(kind, object) } as KindObject<K>;
}

/** An object without what the operator records of its children: what is rendered must not depend on it. */
export function withoutRecord(object: KubeObject): KubeObject {
  if (object.metadata.annotations?.[COMPLETED_ANNOTATION] === undefined) return object;
  const { [COMPLETED_ANNOTATION]: _, ...annotations } = object.metadata.annotations;
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/**
 * {@link renderChildren} of an object whose defaults are applied already; rendered once.
 *
 * @param onStatusRead - called with what `children` reads of the status, see {@link StatusReadListener}
 */
export function renderDefaulted<K extends AnyKind>(
  kind: K,
  self: KindObject<K>,
  options: RenderOptions = {},
  onStatusRead?: StatusReadListener,
): readonly RenderedChild[] {
  const readable = withStatusForChildren(kind, self, onStatusRead);
  const addChildren = (scope: Construct): void => kind.children(scope, readable);
  const manifests = synthesize(self, { name: `${kind.kind}.children`, owns: kind.owns, addChildren }, options);
  return withSeeds(kind, self, manifests);
}

/** What `children` adds before it reads something of the status that is not known. */
export interface BeforeStatus {
  readonly children: readonly RenderedChild[];
  /** What it then reads, see {@link StatusReadListener}; undefined when it reads nothing of that kind. */
  readonly read: string | undefined;
}

/** Thrown where `children` reads what is not known of the status, so that what would follow is not rendered. */
class UnknownStatusError extends Error {
  override readonly name = 'UnknownStatusError';
}

/**
 * Renders what `children` adds before it reads a field of the status that is not known: whatever that field is, it can't
 * follow from it.
 *
 * @param self - with what is known of the status
 * @param isUnknown - whether a path is not known, see {@link StatusReadListener}
 * @throws RenderError when the kind renders a child it must not; KindFunctionError
 */
export function renderBeforeStatus(
  kind: AnyKind,
  self: KindObject<AnyKind>,
  isUnknown: (path: string) => boolean,
): BeforeStatus {
  let read: string | undefined;
  let added: ReadonlySet<IConstruct> | undefined;
  const addChildren = (chart: Construct): void => {
    // An empty status, where nothing is known, shows which field is read.
    const readable = withStatusForChildren(kind, { ...self, status: self.status ?? {} }, (path) => {
      if (path === 'status' || !isUnknown(path)) return;
      read ??= path;
      // Those that a `catch` adds follow from the read, too.
      added ??= new Set(chart.node.findAll());
      throw new UnknownStatusError();
    });
    try {
      kind.children(chart, readable as never);
    } catch (error) {
      if (added === undefined) throw error;
    }
  };
  const isAdded = (construct: IConstruct): boolean => added?.has(construct) ?? true;
  const given = { name: `${kind.kind}.children`, owns: kind.owns, addChildren, isAdded };
  try {
    return { children: withSeeds(kind, self, synthesize(self, given, {})), read };
  } catch (error) {
    // Something that was added is not complete, such as a Deployment that gets its containers later.
    if (error instanceof RenderError && added !== undefined) return { children: [], read };
    throw error;
  }
}

/** A shared group of a kind, and the key that an object names in it. */
export interface SharedKey {
  readonly group: SharedChildren<never>;
  readonly key: string;
}

/**
 * The shared groups of a kind with the keys that an object names.
 *
 * @throws RenderError when a key is taken from the status
 */
export function sharedKeys<K extends AnyKind>(kind: K, self: KindObject<K>): readonly SharedKey[] {
  return kind.shared.map((group) => {
    const name = `${kind.kind}.shared.${group.name}.key`;
    const readable = withoutStatusForKey(self, group.name);
    return { group, key: callKindFunction(describeObject(self), name, () => group.key(readable)) };
  });
}

/** Children that objects of a namespace share under a key. */
export interface SharedRendering {
  readonly group: SharedChildren<never>;
  readonly key: string;
  readonly namespace: string | undefined;
}

/**
 * Renders the children that objects of a namespace share under a key: a function of the key alone. They are rendered
 * twice, to find out what depends on anything else.
 *
 * @throws RenderError when the kind renders a child it must not; ImpureError when the two renderings differ
 */
export function renderShared(
  kind: AnyKind,
  group: SharedChildren<never>,
  key: string,
  namespace: string | undefined,
  options: RenderOptions = {},
): readonly RenderedChild[] {
  const shared = { group, key, namespace };
  const children = renderSharedOnce(kind, shared, options);
  assertPureShared(kind, shared, children, options);
  return children;
}

/** {@link renderShared}, rendered once. */
export function renderSharedOnce(
  kind: AnyKind,
  { group, key, namespace }: SharedRendering,
  options: RenderOptions = {},
): readonly RenderedChild[] {
  const metadata: ObjectMeta = { name: `${group.name} "${key}"`, ...(namespace === undefined ? {} : { namespace }) };
  const standIn = { apiVersion: kind.apiVersion, kind: kind.kind, metadata };
  const name = `${kind.kind}.shared.${group.name}.children`;
  const addChildren = (scope: Construct): void => group.children(scope, key);
  const manifests = synthesize(standIn, { name, owns: group.owns, addChildren }, options);
  return manifests.map((child) => ({ ...child, seeds: [] }));
}

/**
 * Checks that what was rendered depends on the key alone, see {@link assertPure}.
 *
 * @throws ImpureError when it does not
 */
export function assertPureShared(
  kind: AnyKind,
  shared: SharedRendering,
  children: readonly RenderedChild[],
  options: RenderOptions = {},
): void {
  const name = `${kind.kind}.shared.${shared.group.name}.children`;
  const again = (): readonly RenderedChild[] => renderSharedOnce(kind, shared, options);
  assertPure(`${kind.kind} ${shared.group.name} "${shared.key}"`, { name, from: 'key' }, children, again);
}

interface SynthesizedChild {
  readonly type: ResourceType;
  readonly manifest: KubeObject;
}

/** A function of a kind that adds children to a scope. */
interface ChildrenFunction {
  /** For errors: `HelloApp.children`. */
  readonly name: string;
  readonly owns: readonly ResourceType[];
  readonly addChildren: (scope: Construct) => void;
  /** Which of the constructs are rendered. @default all */
  readonly isAdded?: (construct: IConstruct) => boolean;
}

function synthesize(
  owner: KubeObject,
  { name, owns, addChildren, isAdded = () => true }: ChildrenFunction,
  { isPlaceholder = () => false }: RenderOptions,
): readonly SynthesizedChild[] {
  const { namespace } = owner.metadata;
  const subject = describeObject(owner);
  const chart = new ChildrenChart(subject, namespace);
  const seen = new Set<string>();
  callKindFunction(subject, name, () => addChildren(chart));
  return synthManifests(subject, chart, isAdded).map(({ manifest, props }) => {
    const type = requireOwnedType(subject, owns, manifest);
    checkIdentity(subject, namespace, type, manifest, seen);
    checkListKeys(subject, type, manifest);
    checkServerFields(subject, type, manifest);
    if (!isSecret(type)) return { type, manifest };
    return { type, manifest: toStoredSecret(subject, manifest, props, isPlaceholder) };
  });
}

/** Rejects children without a name: a generated name would be the same for every object of the kind. */
class ChildrenChart extends Chart {
  constructor(
    private readonly subject: string,
    namespace: string | undefined,
  ) {
    super(new App(), 'children', namespace === undefined ? {} : { namespace });
  }

  override generateObjectName(child: ApiObject): string {
    const problem = `the ${child.kind} at ${child.node.path} needs a metadata.name`;
    throw new RenderError(this.subject, `its children cannot be rendered: ${problem}`);
  }
}

/** A manifest, and the props from which its construct made it. */
interface SynthesizedManifest {
  readonly manifest: KubeObject;
  readonly props: unknown;
}

/** All objects below the chart, in the order of the constructs; those within other constructs, such as cdk8s-plus's, included. */
function synthManifests(
  subject: string,
  chart: Chart,
  isAdded: (construct: IConstruct) => boolean,
): readonly SynthesizedManifest[] {
  try {
    assertNoDependencies(subject, chart);
    return chart.node
      .findAll()
      .filter((construct) => isAdded(construct))
      .filter((construct) => ApiObject.isApiObject(construct))
      .map((construct) => ({
        manifest: construct.toJson() as KubeObject,
        props: Reflect.get(construct, 'props') as unknown,
      }));
  } catch (error) {
    if (error instanceof RenderError) throw error;
    throw new RenderError(subject, `its children cannot be rendered: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * `addDependency` orders what Pulumi and `cdk8s synth` write. The operator has its own order, and would
 * ignore it.
 */
function assertNoDependencies(subject: string, chart: Chart): void {
  for (const construct of chart.node.findAll()) {
    const target = construct.node.dependencies.find((dependency) => !isStatefulSetService(construct, dependency));
    if (target === undefined) continue;
    const message =
      `it orders ${construct.node.path} after ${target.node.path} by addDependency(), which the operator does not follow; leave it out: ` +
      'Kubernetes brings children together in any order';
    throw new RenderError(subject, message);
  }
}

/**
 * The StatefulSet of cdk8s-plus adds this dependency itself. Kubernetes does not need it: pods do not wait
 * for a Service.
 */
function isStatefulSetService(construct: IConstruct, dependency: IConstruct): boolean {
  const set: (IConstruct & { readonly service?: unknown }) | undefined = construct.node.scope;
  return ApiObject.isApiObject(construct) && construct.kind === 'StatefulSet' && set?.service === dependency;
}

function requireOwnedType(subject: string, owns: readonly ResourceType[], manifest: KubeObject): ResourceType {
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

function withSeeds(kind: AnyKind, self: KubeObject, children: readonly SynthesizedChild[]): readonly RenderedChild[] {
  return children.map((child) => ({ ...child, seeds: activeSeeds(kind, self, child.type, children) }));
}

function activeSeeds(
  kind: AnyKind,
  self: KubeObject,
  type: ResourceType,
  siblings: readonly SynthesizedChild[],
): readonly ActiveSeed[] {
  return kind.seeds
    .filter((seed) => isType(seed.of, type) && siblings.some((sibling) => isType(seed.writer, sibling.type)))
    .map(({ path, keep = () => true }) => ({
      path,
      keep: (live) => callKindFunction(describeObject(self), `${kind.kind}.seeds.keep`, () => keep(live)),
    }));
}

function isType(a: ResourceType, b: ResourceType): boolean {
  return a === b || typeKey(a) === typeKey(b);
}
