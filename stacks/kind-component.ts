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
  /** Required for namespaced kinds: no cluster is asked, and no kubeconfig's default is taken. */
  readonly namespace?: pulumi.Input<string>;
  readonly labels?: Readonly<Record<string, pulumi.Input<string>>>;
  readonly annotations?: Readonly<Record<string, pulumi.Input<string>>>;
}

interface CommonArgs<K extends AnyKind> {
  /** The kind of the object. */
  readonly kind: K;
  readonly metadata: KindMetadata;
  /**
   * `resource`: the object itself, which the operator in the cluster then reconciles. `children`: what the operator would create for it, where
   * no operator is wanted; Outputs may stand for texts and numbers then. Not of kinds that act by effects (Cluster, Kubeconfig): only an operator carries
   * these out.
   * @default 'resource'
   */
  readonly as?: 'resource' | 'children';
  /**
   * Wait until the object is Ready as it is now, by its conditions. Only of a `resource`; Pulumi waits for children as it does for their kinds.
   * @default true
   */
  readonly waitUntilReady?: boolean;
  /** How long to wait for it to become ready, and to be gone, in seconds. @default 600, which is Pulumi's */
  readonly timeoutSeconds?: number;
}

/** What a KindComponent is made of. A spec may be left out where nothing in it is required. */
export type KindComponentArgs<K extends AnyKind> = CommonArgs<K> &
  (Partial<KindSpec<K>> extends KindSpec<K>
    ? { readonly spec?: WithOutputs<KindSpec<K>> }
    : { readonly spec: WithOutputs<KindSpec<K>> });

/**
 * The annotation's value by which Pulumi waits for an object of any kind: Ready, and seen as it is now.
 * Source: pulumi-kubernetes, annotation `pulumi.com/waitFor`, which compares the condition's `observedGeneration` as kstatus does.
 */
export const READY_CONDITION = 'condition=Ready';

/** The arguments without their types, which say the same of every kind. */
interface AnyKindComponentArgs {
  readonly kind: AnyKind;
  readonly metadata: KindMetadata;
  readonly spec?: unknown;
  readonly as?: 'resource' | 'children';
  readonly waitUntilReady?: boolean;
  readonly timeoutSeconds?: number;
}

/**
 * An object of a kind as Pulumi resources: the object itself, or, where no operator is wanted, its children. Never both.
 *
 * Below a {@link PlatformComponent}, however deep, it goes to the platform's cluster, after the operators and gone before them; elsewhere,
 * spread `platform.objectOptions` into the options.
 *
 * Guarantees: what is known while the program runs is checked before anything is registered, the rest before the object is. Children are what the operator would create,
 * without what marks them as the operator's; fields that another writer takes over are left alone after creation. What several
 * objects of a namespace share is registered once on each cluster.
 *
 * An object of a kind that acts by effects is protected, unless the options say `protect: false`: deleting a Cluster takes it off its machines, and
 * Pulumi would do that because of another provider, too. Destroying the stack fails until the protection is taken away.
 *
 * Caveats: changing `as` replaces everything. What objects share belongs to none of them: `protect` and `retainOnDelete` do not reach it. Of children,
 * a field that another writer takes over keeps the value that the program gave last, since a program cannot know the live one: a MicroServiceDeploy
 * of 0 pods stays there when autoscaling is switched on, and its `replicas` do not come back by themselves when it is switched off. Both take more than
 * one `pulumi up`: see stacks/README.md.
 *
 * Errors: InvalidObjectError with every field that is wrong; TypeError when another component of the program has the same object, and when children are
 * asked for of a kind that acts by effects.
 */
export class KindComponent<K extends AnyKind = AnyKind> extends pulumi.ComponentResource {
  /** What was registered, by the path of its construct; shared children are not among them. */
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
    // Where it is an Output, nobody knows yet which objects are the same.
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
    // The types say the same of every kind.
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
          for (const child of renderShared(kind, group, key, namespace)) addChild(chart, child);
        };
        // Named by the key and below no component, so that it stays the same whichever of the components goes.
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

/** After how long a person is told why Pulumi may still be waiting, in seconds. */
const WARN_AFTER_SECONDS = 60;

/**
 * Warns while an object that nobody makes ready is waited for: the provider's own message, when its time is over, knows nothing of operators.
 *
 * @param after what the object waits for itself
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
    // What could not be logged fails the run by itself.
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

/** What Pulumi does not hand on to the objects of a component by itself. */
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

/** What the components of one run of a program have claimed. Several runs may share a process, as in tests. */
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

/** How a shared resource is registered. */
interface SharedName {
  readonly name: string;
  readonly opts: pulumi.ComponentResourceOptions;
}

/**
 * What several components share: made by the first that asks, once on each cluster.
 *
 * @param id tells it from others of its cluster
 * @param make is told the name, of which a program has only one, and the options that go with it
 */
function sharedResource<R extends pulumi.Resource>(
  provider: pulumi.ProviderResource | undefined,
  id: string,
  make: (named: SharedName) => R,
): R {
  const { shared } = claimsOf(provider);
  const known = shared.get(id);
  // Whoever asks under this id makes the same.
  if (known !== undefined) return known as R;
  const made = make(sharedName(provider, id));
  shared.set(id, made);
  return made;
}

function sharedName(provider: pulumi.ProviderResource | undefined, id: string): SharedName {
  if (provider === undefined) return { name: id, opts: {} };
  // What was registered before the provider stood in the name is taken over, unless it is that of the default provider.
  const taken = claimsOf(undefined).shared.has(id);
  return { name: `${pulumi.resourceName(provider)}/${id}`, opts: { provider, aliases: taken ? [] : [{ name: id }] } };
}
