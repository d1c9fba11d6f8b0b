import * as pulumi from '@pulumi/pulumi';
import { App, Chart } from 'cdk8s';
import type { AnyKind, KindSpec } from '../constructs/kind/kind';
import { renderShared, sharedKeys, withDefaults } from '../constructs/kind/render';
import { describeObject } from '../constructs/kind/validate';
import { InvalidObjectError } from '../constructs/kube/errors';
import type { KubeObject } from '../constructs/kube/kube-object';
import {
  ConstructResources,
  KindResource,
  WITH_TOKENS,
  addChild,
  addKindChildren,
  outputs,
  assertNoEffects,
  resourceOptions,
  type KindResourceProps,
  type KubernetesObject,
} from './bridge';
import { validateKnown, replaceOutputsWithTokens } from './kind-spec';
import { enclosingPlatform } from './platform';

/** A value whose leaves may be Outputs. */
export type WithOutputs<T> = [T] extends [string | number | boolean | null | undefined]
  ? pulumi.Input<T>
  : T extends readonly (infer E)[]
    ? readonly WithOutputs<E>[]
    : T extends object
      ? { readonly [K in keyof T]: WithOutputs<T[K]> }
      : pulumi.Input<T>;

/** `metadata` of an object of a kind. */
export interface KindMetadata {
  readonly name: string;
  /** Required for namespaced kinds: the default namespace of a kubeconfig is not used. */
  readonly namespace?: pulumi.Input<string>;
  readonly labels?: Readonly<Record<string, pulumi.Input<string>>>;
  readonly annotations?: Readonly<Record<string, pulumi.Input<string>>>;
}

interface CommonArgs<K extends AnyKind> {
  /** The kind of the object. */
  readonly kind: K;
  readonly metadata: KindMetadata;
  /**
   * `resource`: the object itself, which the operator in the cluster then reconciles. `children`: the objects
   * that the operator would create for it, if no operator is wanted; only texts and numbers may be Outputs
   * then. `children` is not possible for kinds with effects (Cluster, Kubeconfig), which only an operator
   * executes.
   * @default 'resource'
   */
  readonly as?: 'resource' | 'children';
  /**
   * Wait until the conditions say that the current generation of the object is Ready. Only for a `resource`;
   * Pulumi waits for children as for any object of their kinds.
   * @default true
   */
  readonly waitUntilReady?: boolean;
  /**
   * How long to wait for it to become ready, and to be deleted, in seconds.
   * @default 600, which is Pulumi's
   */
  readonly timeoutSeconds?: number;
}

/** Arguments of a KindComponent. The spec may be left out if none of its fields is required. */
export type KindComponentArgs<K extends AnyKind> = CommonArgs<K> &
  (Partial<KindSpec<K>> extends KindSpec<K>
    ? { readonly spec?: WithOutputs<KindSpec<K>> }
    : { readonly spec: WithOutputs<KindSpec<K>> });

/**
 * An object of a kind as Pulumi resources: the object itself or, if no operator is wanted, its children.
 * Never both.
 *
 * Below a {@link PlatformComponent}, however deep, it goes to the platform's cluster; it is created after the
 * operators and deleted before them. Elsewhere, spread `platform.objectOptions` into the options.
 *
 * Guarantees: values that are known while the program runs are checked before anything is registered, the
 * others before the object is registered. Children are the same as the operator's, without the marks of its
 * ownership; fields that another writer takes over are left alone after creation. Children that several
 * objects of a namespace share are registered once on each cluster.
 *
 * An object of a kind with effects is protected unless the options say `protect: false`: deleting a Cluster
 * uninstalls it from its machines, and Pulumi would also delete it to replace it when its provider changes.
 * Destroying the stack fails until the protection is removed.
 *
 * Caveats: changing `as` replaces everything. Shared children belong to no single object, so `protect` and
 * `retainOnDelete` do not apply to them. In children, a field that another writer takes over keeps the value
 * that the program gave last, since a program cannot know the live one: a MicroServiceDeploy of 0 pods stays
 * at 0 when autoscaling is switched on, and its `replicas` do not come back by themselves when it is switched
 * off. Both take more than one `pulumi up`: see stacks/README.md.
 *
 * Errors: InvalidObjectError with every field that is wrong; TypeError if another component of the program
 * has the same object, or if `as: 'children'` is given for a kind with effects.
 */
export class KindComponent<K extends AnyKind = AnyKind> extends pulumi.ComponentResource {
  /** The registered resources by the path of their construct, without shared children. */
  readonly resources: ReadonlyMap<string, KubernetesObject>;

  constructor(name: string, args: KindComponentArgs<K>, opts: pulumi.ComponentResourceOptions = {}) {
    const given = args as unknown as AnyKindComponentArgs;
    const asChildren = given.as === 'children';
    if (asChildren) assertNoEffects(given.kind, `KindComponent ${name}`);
    const object = objectOf(name, given);
    if (!asChildren) validateKnown(given.kind, object);
    const stood = asChildren ? replaceOutputsWithTokens(given.kind, object, name) : object;
    super('kindred:kinds:KindComponent', name, inputsOf(given), opts);
    const provider = this.getProvider(`kubernetes:${given.kind.apiVersion}:${given.kind.kind}`);
    this.claim(provider, given, name);
    const tree = { parent: this, ...inheritedOptions(this, opts) };
    this.resources = asChildren
      ? this.children(name, given, stood, provider, tree)
      : this.object(name, given, object, tree, opts.protect);
    this.registerOutputs({ resources: [...this.resources.keys()] });
  }

  private claim(
    provider: pulumi.ProviderResource | undefined,
    { kind, metadata }: AnyKindComponentArgs,
    name: string,
  ): void {
    const { namespace } = metadata;
    // If it is an Output, it is not known yet which objects are the same.
    if (namespace !== undefined && typeof namespace !== 'string') return;
    claimObject(provider, { crdName: kind.crdName, namespace: namespace ?? '', name: metadata.name }, name);
  }

  private object(
    name: string,
    args: AnyKindComponentArgs,
    object: KubeObject,
    tree: TreeOptions,
    protect: boolean | undefined,
  ): ReadonlyMap<string, KubernetesObject> {
    const { kind, spec, timeoutSeconds } = args;
    const props = { kind, metadata: object.metadata, ...(spec === undefined ? {} : { spec }) };
    // The type parameter of the kind is lost here; the checks are the same for every kind.
    const constructs = new KindResource(new Chart(new App(), name), 'object', props as KindResourceProps<AnyKind>);
    resourceOptions(constructs, {
      scope: kind.scope,
      ...(protect === undefined ? {} : { protect }),
      await: {
        ...(args.waitUntilReady === false ? {} : { waitFor: READY_CONDITION }),
        ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
      },
    });
    const { resources } = new ConstructResources(name, { constructs }, tree);
    if (args.waitUntilReady !== false) warnWhileNotReady(this, args, tree.dependsOn, [...resources.values()]);
    return resources;
  }

  private children(
    name: string,
    { kind, timeoutSeconds }: AnyKindComponentArgs,
    object: KubeObject,
    provider: pulumi.ProviderResource | undefined,
    tree: TreeOptions,
  ): ReadonlyMap<string, KubernetesObject> {
    const { dependsOn } = tree;
    const shared = sharedKeys(kind, withDefaults(kind, object)).map(({ group, key }) => {
      const { namespace } = object.metadata;
      const id = `${kind.crdName}/${group.name}/${namespace ?? ''}/${key}`;
      return sharedResource(provider, id, (named) => {
        const build = (chart: Chart): void => {
          for (const child of renderShared(kind, group, key, namespace, WITH_TOKENS)) addChild(chart, child);
        };
        // Named by the key and below no component, so that it stays the same whichever component is deleted.
        return new ConstructResources(named.name, { build }, { ...named.opts, dependsOn });
      });
    });
    const build = (chart: Chart): void => {
      addKindChildren(chart, kind, object, { shared: false });
      if (timeoutSeconds !== undefined) resourceOptions(chart, { await: { timeoutSeconds } });
    };
    return new ConstructResources(name, { build }, { ...tree, dependsOn: [...dependsOn, ...shared] }).resources;
  }
}

/**
 * The value of the annotation with which Pulumi waits until the current generation of an object of any kind
 * is Ready.
 * Source: pulumi-kubernetes, annotation `pulumi.com/waitFor`, which compares the condition's
 * `observedGeneration` as kstatus does.
 */
export const READY_CONDITION = 'condition=Ready';

/** The arguments without the type of their kind. */
interface AnyKindComponentArgs {
  readonly kind: AnyKind;
  readonly metadata: KindMetadata;
  readonly spec?: unknown;
  readonly as?: 'resource' | 'children';
  readonly waitUntilReady?: boolean;
  readonly timeoutSeconds?: number;
}

/** When to warn the user that Pulumi still waits, in seconds. */
const WARN_AFTER_SECONDS = 60;

/**
 * Warns if Pulumi waits long for an object to become Ready: the provider's own message at the timeout does
 * not mention the operator.
 *
 * @param after the resources that the object itself waits for
 */
function warnWhileNotReady(
  component: pulumi.Resource,
  { kind, metadata, timeoutSeconds = 600 }: AnyKindComponentArgs,
  after: pulumi.Input<pulumi.Resource>[],
  objects: readonly KubernetesObject[],
): void {
  if (pulumi.runtime.isDryRun()) return;
  const { name, namespace } = metadata;
  const inNamespace =
    namespace === undefined ? '' : typeof namespace === 'string' ? ` -n ${namespace}` : ' -n NAMESPACE';
  const seconds = Math.min(WARN_AFTER_SECONDS, timeoutSeconds / 2);
  const message =
    `${kind.kind} ${name} is not Ready after ${seconds} s; Pulumi waits ${timeoutSeconds} s in all. Its conditions say why: ` +
    `kubectl describe${inNamespace} ${kind.crdName} ${name}. If it has none, its operator does not run: ` +
    'kubectl get pods -A -l app.kubernetes.io/part-of=kindred';
  const begun = pulumi.output(after).apply((resources) => pulumi.all(resources.map(({ urn }) => urn)));
  begun.apply(() => {
    // If the engine cannot log it, the run fails anyway.
    const timer = setTimeout(() => void pulumi.log.warn(message, component), seconds * 1000);
    timer.unref();
    for (const { urn } of objects) urn.apply(() => clearTimeout(timer));
  });
}

/** Options of the tree of a component. */
interface TreeOptions extends pulumi.ComponentResourceOptions {
  readonly dependsOn: pulumi.Input<pulumi.Resource>[];
}

/** The arguments as transforms and the state have them: the kind by its name. */
function inputsOf({ kind, ...args }: AnyKindComponentArgs): pulumi.Inputs {
  return { apiVersion: kind.apiVersion, kind: kind.kind, ...args };
}

function objectOf(tree: string, { kind, metadata, spec }: AnyKindComponentArgs): KubeObject {
  const { apiVersion, scope } = kind;
  const { name, labels, annotations } = metadata;
  const namespace = scope === 'Namespaced' ? metadata.namespace : undefined;
  const text = (value: pulumi.Input<string>, at: string): string =>
    outputs.text(value, { id: `${tree}#metadata.${at}` });
  const texts = (values: NonNullable<KindMetadata['labels']>, at: string): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, text(value, `${at}.${key}`)]));
  const object = {
    ...{ apiVersion, kind: kind.kind },
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace: text(namespace, 'namespace') }),
      ...(labels === undefined ? {} : { labels: texts(labels, 'labels') }),
      ...(annotations === undefined ? {} : { annotations: texts(annotations, 'annotations') }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
  const wrong = scopeProblem(kind, metadata);
  if (wrong !== undefined) throw new InvalidObjectError(describeObject(object), [wrong]);
  return object;
}

function scopeProblem({ scope, kind }: AnyKind, { namespace }: KindMetadata) {
  const path = 'metadata.namespace';
  if (scope === 'Namespaced' && namespace === undefined) {
    return { path, message: `is required: a ${kind} lives in a namespace, and which one is not left to a kubeconfig` };
  }
  if (scope === 'Cluster' && namespace !== undefined) {
    return { path, message: `leave it out: a ${kind} lives in no namespace` };
  }
  return undefined;
}

/** Options that Pulumi does not pass on to the objects of a component by itself. */
function inheritedOptions(
  component: pulumi.Resource,
  { dependsOn, retainOnDelete }: pulumi.ComponentResourceOptions,
): Omit<TreeOptions, 'parent'> {
  const given = dependsOn === undefined ? [] : Array.isArray(dependsOn) ? dependsOn : [dependsOn];
  return {
    // Not the platform itself: it contains this component, which would then wait for itself.
    dependsOn: [...given, ...(enclosingPlatform(component)?.operators ?? [])] as TreeOptions['dependsOn'],
    ...(retainOnDelete === undefined ? {} : { retainOnDelete }),
  };
}

/**
 * The objects that the components of one run of a program have claimed. Several runs may share a process, as
 * in tests.
 */
interface Claims {
  readonly objects: Map<string, string>;
  readonly shared: Map<string, pulumi.Resource>;
}

const claimsByRun = new WeakMap<object, WeakMap<object, Claims>>();
const noRun = {};
const defaultProvider = {};

function claimsOf(provider: pulumi.ProviderResource | undefined): Claims {
  const run = pulumi.runtime.getMonitor() ?? noRun;
  const providers = claimsByRun.get(run) ?? new WeakMap<object, Claims>();
  claimsByRun.set(run, providers);
  const claims = providers.get(provider ?? defaultProvider) ?? { objects: new Map(), shared: new Map() };
  providers.set(provider ?? defaultProvider, claims);
  return claims;
}

/**
 * Claims an object for a component.
 *
 * @throws TypeError when another component of the same program has it: the two would overwrite each other
 */
function claimObject(
  provider: pulumi.ProviderResource | undefined,
  object: { readonly crdName: string; readonly namespace: string; readonly name: string },
  component: string,
): void {
  const { objects } = claimsOf(provider);
  const id = JSON.stringify(object);
  const other = objects.get(id);
  if (other !== undefined) {
    const { crdName, namespace, name } = object;
    const full = namespace === '' ? name : `${namespace}/${name}`;
    throw new TypeError(
      `KindComponent ${component}: ${crdName} ${full} belongs to the KindComponent ${other} of this program already; an object has one, ` +
        "either as: 'resource' or as: 'children'. Give it another name, or remove one of the two",
    );
  }
  objects.set(id, component);
}

/** Name and options with which a shared resource is registered. */
interface SharedName {
  readonly name: string;
  readonly opts: pulumi.ComponentResourceOptions;
}

/**
 * A resource that several components share. The first of them creates it, once on each cluster.
 *
 * @param id unique on its cluster
 * @param make creates it with a name that is unique in the program, and the options that go with that name
 */
function sharedResource<R extends pulumi.Resource>(
  provider: pulumi.ProviderResource | undefined,
  id: string,
  make: (named: SharedName) => R,
): R {
  const { shared } = claimsOf(provider);
  const known = shared.get(id);
  // All callers with this id create the same type.
  if (known !== undefined) return known as R;
  const made = make(sharedName(provider, id));
  shared.set(id, made);
  return made;
}

function sharedName(provider: pulumi.ProviderResource | undefined, id: string): SharedName {
  if (provider === undefined) return { name: id, opts: {} };
  // The alias takes over a resource from before the provider was part of the name, unless that name belongs
  // to the default provider's.
  const taken = claimsOf(undefined).shared.has(id);
  return { name: `${pulumi.resourceName(provider)}/${id}`, opts: { provider, aliases: taken ? [] : [{ name: id }] } };
}
