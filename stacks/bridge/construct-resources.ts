import { getVersion } from '@pulumi/kubernetes/utilities';
import * as pulumi from '@pulumi/pulumi';
import { App, Chart, type ApiObject } from 'cdk8s';
import type { IConstruct } from 'constructs';
import type { Manifest } from './manifest';
import { resolvedCheck, ownOptions, type BridgeOptions } from './options';
import { planResources, type PlannedObject } from './plan';
import { BridgeError, pathBelow } from './render-tree';
import { withTokenScope, textToken, tokenFor } from './tokens';

/** Arguments of {@link ConstructResources}: one of `build` and `constructs`. */
export interface ConstructResourcesArgs {
  /** Adds the constructs to a new chart, whose id is the resource's name. */
  readonly build?: (chart: Chart) => void;
  /** An existing App, Chart or other construct within an App. */
  readonly constructs?: IConstruct;
  /**
   * The namespace of namespaced objects that do not set one. It is not created, but the tree may contain its
   * Namespace.
   * @default each must set its own
   */
  readonly namespace?: pulumi.Input<string>;
}

const TREE_TYPE = 'kindred:constructs:ConstructResources';
const CONSTRUCT_TYPE = 'kindred:constructs:Construct';

/** The resources of the ApiObjects of all trees, so that one tree can depend on another. */
const resourceByConstruct = new WeakMap<IConstruct, KubernetesObject>();

/**
 * Turns constructs into Pulumi resources: constructs become components, ApiObjects become typed `kubernetes:` resources.
 *
 * Guarantees: resources are named `<name>/<path of the construct>`, whatever the order of the constructs.
 * They are registered as cdk8s renders them, except that a missing namespace is filled in, and dropped from
 * cluster-scoped objects. Each object waits for the dependencies of its construct, and for its Namespace and
 * its CRD if these are in the tree. Nothing is registered unless everything can be.
 *
 * Assumptions: constructs are not changed afterwards.
 *
 * Errors: BridgeError with everything that is wrong with the tree.
 */
export class ConstructResources extends pulumi.ComponentResource {
  /** The resources by the path of their constructs below the root: the chart of `build`, or `constructs`. */
  readonly resources: ReadonlyMap<string, KubernetesObject>;
  private readonly root: IConstruct;
  private readonly treeName: string;
  /** The resource of each construct that has one. */
  private readonly parents = new Map<IConstruct, pulumi.Resource>();

  constructor(name: string, args: ConstructResourcesArgs, opts: pulumi.ComponentResourceOptions = {}) {
    const { root, plan } = planTree(name, args);
    super(TREE_TYPE, name, args.namespace === undefined ? {} : { namespace: args.namespace }, opts);
    this.root = root;
    this.treeName = name;
    this.parents.set(root, this);
    const resources = new Map<string, KubernetesObject>();
    for (const object of plan) resources.set(object.path, this.register(object, opts));
    this.resources = resources;
    this.registerOutputs({ resources: [...resources.keys()] });
  }

  /** The resource of an ApiObject, for `dependsOn` and outputs. @throws TypeError when the object is not in the tree */
  resourceOf(construct: ApiObject): KubernetesObject {
    const resource = this.parents.get(construct);
    if (resource instanceof KubernetesObject) return resource;
    throw new TypeError(`${this.treeName} holds no resource of ${construct.node.path}, which is not in its tree`);
  }

  private register(object: PlannedObject, tree: pulumi.ComponentResourceOptions): KubernetesObject {
    const { dependsOn: before, retainOnDelete } = tree;
    const { construct, path, options, inputs } = object;
    const after = object.after.flatMap((other) => this.parents.get(other) ?? []);
    const check = object.open ? resolvedCheck(construct, this.nameOf(path), inputs) : undefined;
    const resource = new KubernetesObject(this.nameOf(path), object, inputs, {
      // Pulumi passes `protect` and providers on by itself.
      ...(retainOnDelete === undefined ? {} : { retainOnDelete }),
      ...customOptions(options),
      ...(object.kind === 'Secret' && object.apiVersion === 'v1'
        ? { additionalSecretOutputs: ['data', 'stringData'] }
        : {}),
      parent: this.parentOf(construct),
      aliases: [
        ...this.aliasesOf(construct, object),
        ...object.otherVersions.map((version) => versionAlias(object, version)),
      ],
      dependsOn: [
        ...after,
        ...object.outside,
        ...(options.dependsOn ?? []),
        ...(check === undefined ? [] : [check as unknown as pulumi.Input<pulumi.Resource>]),
        // An object with dependencies waits for it through them.
        ...(after.length === 0 && before !== undefined ? [before as pulumi.Input<pulumi.Resource>] : []),
      ],
    });
    resourceByConstruct.set(construct, resource);
    this.parents.set(construct, resource);
    return resource;
  }

  private nameOf(path: string): string {
    return path === '' ? this.treeName : `${this.treeName}/${path}`;
  }

  /**
   * The parent of a construct's resource: the resource of its scope, or a component if the scope is no
   * ApiObject.
   */
  private parentOf(construct: IConstruct): pulumi.Resource {
    if (construct === this.root) return this;
    const scope = construct.node.scope ?? this.root;
    const known = this.parents.get(scope);
    if (known !== undefined) return known;
    const component = new pulumi.ComponentResource(
      CONSTRUCT_TYPE,
      this.nameOf(pathBelow(this.root, scope)),
      {},
      { parent: this.parentOf(scope), aliases: [...this.aliasesOf(scope)] },
    );
    this.parents.set(scope, component);
    return component;
  }

  private aliasesOf(construct: IConstruct, object?: PlannedObject): readonly pulumi.Input<pulumi.URN | pulumi.Alias>[] {
    return (ownOptions(construct).aliases ?? []).map((alias) => {
      if (typeof alias !== 'string' || alias.startsWith('urn:')) return alias;
      return this.urnAt(alias, object === undefined ? CONSTRUCT_TYPE : typeToken(object));
    });
  }

  /** The URN of a construct at a path of this tree. */
  private urnAt(path: string, type: string): pulumi.Output<pulumi.URN> {
    const steps = path.split('/');
    const parent = steps
      .slice(0, -1)
      .reduce<pulumi.Output<pulumi.URN>>(
        (urn, _, i) => pulumi.createUrn(this.nameOf(steps.slice(0, i + 1).join('/')), CONSTRUCT_TYPE, urn),
        this.urn,
      );
    return pulumi.createUrn(this.nameOf(path), type, parent);
  }
}

function versionAlias({ kind }: PlannedObject, apiVersion: string): pulumi.Alias {
  return { type: typeToken({ apiVersion, kind }) };
}

/** Builds the tree and plans it, before anything is registered. */
function planTree(
  name: string,
  { build, constructs, namespace }: ConstructResourcesArgs,
): { root: IConstruct; plan: readonly PlannedObject[] } {
  if ((build === undefined) === (constructs === undefined)) {
    throw new BridgeError(name, [{ path: '', message: 'give one of `build` and `constructs`' }]);
  }
  const fallback = namespaceText(name, namespace);
  const { result: root, made } = withTokenScope(name, () => constructs ?? buildChart(name, build, fallback));
  return {
    root,
    plan: planResources({
      tree: name,
      root,
      made,
      namespace: fallback,
      registered: (object) => resourceByConstruct.get(object),
    }),
  };
}

function buildChart(name: string, build: ConstructResourcesArgs['build'], namespace: string | undefined): Chart {
  const chart = new Chart(new App(), name, namespace === undefined ? {} : { namespace });
  build?.(chart);
  return chart;
}

function namespaceText(name: string, namespace: pulumi.Input<string> | undefined): string | undefined {
  if (namespace === undefined || typeof namespace === 'string') return namespace;
  return textToken(tokenFor(pulumi.output(namespace), `${name}#namespace`).id);
}

function customOptions(options: BridgeOptions): pulumi.CustomResourceOptions {
  const { ignoreChanges, replaceOnChanges, await: { timeoutSeconds } = {} } = options;
  const timeout = timeoutSeconds === undefined ? undefined : `${timeoutSeconds}s`;
  return {
    ...(options.protect === undefined ? {} : { protect: options.protect }),
    ...(options.retainOnDelete === undefined ? {} : { retainOnDelete: options.retainOnDelete }),
    ...(options.deleteBeforeReplace === undefined ? {} : { deleteBeforeReplace: options.deleteBeforeReplace }),
    ...(options.provider === undefined ? {} : { provider: options.provider }),
    ...(options.import === undefined ? {} : { import: options.import }),
    ...(ignoreChanges === undefined ? {} : { ignoreChanges: [...ignoreChanges] }),
    ...(replaceOnChanges === undefined ? {} : { replaceOnChanges: [...replaceOnChanges] }),
    ...(timeout === undefined ? {} : { customTimeouts: { create: timeout, update: timeout, delete: timeout } }),
  };
}

/** `metadata` of an object as the server has it. */
export interface ServerMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * A Kubernetes object as a resource of the `kubernetes` provider, with the same type as the provider's own
 * classes. Those classes are not used: importing them loads thousands of modules, and custom resources have
 * none.
 */
export class KubernetesObject extends pulumi.CustomResource {
  // `declare` only: Pulumi sets them, and a class field would overwrite its value.
  declare readonly apiVersion: pulumi.Output<string>;
  declare readonly kind: pulumi.Output<string>;
  declare readonly metadata: pulumi.Output<ServerMetadata>;
  /** Unknown in a preview before the object is created; undefined for kinds without one. */
  declare readonly status: pulumi.Output<unknown>;

  constructor(
    name: string,
    type: Pick<Manifest, 'apiVersion' | 'kind'>,
    inputs: pulumi.Inputs,
    options: pulumi.CustomResourceOptions,
  ) {
    super(typeToken(type), name, { status: undefined, ...inputs }, { version: getVersion(), ...options });
  }
}

/** The type of a resource of the `kubernetes` provider: `kubernetes:apps/v1:Deployment`. The core group is `core`. */
export function typeToken({ apiVersion, kind }: Pick<Manifest, 'apiVersion' | 'kind'>): string {
  return `kubernetes:${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}:${kind}`;
}

/**
 * Arguments for a `kubernetes.Provider` that updates ConfigMaps and Secrets in place, as the bridge expects.
 * Without them the provider deletes one whose content changes and creates it again under the same name, so it
 * is missing for a moment.
 * Source: pulumi-kubernetes, provider arguments of these names; what is `immutable` is replaced anyway.
 */
export const mutableContent = { enableConfigMapMutable: true, enableSecretMutable: true } as const;
