import * as pulumi from '@pulumi/pulumi';
import type { ApiObject } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { InvalidObjectError, type Problem } from '../../constructs/kube/errors';
import type { Manifest } from './manifest';

/** How Pulumi waits for an object. */
export interface AwaitOptions {
  /** Do not wait: the resource is ready once the server has accepted it. @default false */
  readonly skip?: boolean;
  /**
   * How long to wait for the object to become ready, or to be deleted, in seconds.
   * @default the provider's for its kind
   */
  readonly timeoutSeconds?: number;
  /**
   * What to wait for: `condition=Ready`, or `jsonpath={.status.phase}=Running`. If there are several, all of
   * them.
   * Source: pulumi-kubernetes, annotation `pulumi.com/waitFor`.
   * @default the provider's for its kind
   */
  readonly waitFor?: string | readonly string[];
}

/**
 * Pulumi options for the resources of a construct and those below it. An inner construct's options win unless
 * noted below.
 */
export interface BridgeOptions {
  /** Refuse to delete it. It makes destroying the stack fail. @default false */
  readonly protect?: boolean;
  /** Leave the object in the cluster when it leaves the stack. @default false */
  readonly retainOnDelete?: boolean;
  /** Delete the old object before its replacement is created. @default what the provider finds necessary */
  readonly deleteBeforeReplace?: boolean;
  /**
   * Fields to set at creation and to leave alone afterwards: `spec.replicas`. Adds to those of outer
   * constructs.
   */
  readonly ignoreChanges?: readonly string[];
  /** Fields whose change replaces the object. Adds to those of outer constructs. */
  readonly replaceOnChanges?: readonly string[];
  /**
   * Where the construct was before: its former path below the root of the tree, or any alias of Pulumi's.
   * Constructs below it follow. Only for the construct itself.
   */
  readonly aliases?: readonly (string | pulumi.Alias)[];
  /** The provider to use. @default that of the tree */
  readonly provider?: pulumi.ProviderResource;
  /**
   * Pulumi resources to wait for, besides the dependencies of constructs. Adds to those of outer constructs.
   */
  readonly dependsOn?: readonly pulumi.Input<pulumi.Resource>[];
  /** Outer and inner settings are merged. */
  readonly await?: AwaitOptions;
  /** Whether objects live in a namespace. @default known for Kubernetes' own kinds and for those whose CRD is in the tree */
  readonly scope?: 'Namespaced' | 'Cluster';
  /**
   * For ConfigMaps and Secrets: the name gets a hash of the content, and references to it in the tree follow.
   * So pods roll when the content changes, and the old object stays until they have.
   * @default false: the name is as written, and the content changes in place
   */
  readonly contentHashedName?: boolean;
  /** For ConfigMaps and Secrets: sets `immutable`; a change of content then replaces the object. @default as the construct says */
  readonly immutable?: boolean;
  /** Id of an existing object to take over: `<namespace>/<name>`, or `<name>`. Only for the construct itself. */
  readonly import?: string | undefined;
}

const optionsOf = new WeakMap<IConstruct, BridgeOptions>();

/**
 * Sets Pulumi options for the resources of a construct and those below it. A later call for it wins, field by
 * field.
 */
export function resourceOptions(construct: IConstruct, options: BridgeOptions): void {
  optionsOf.set(construct, { ...optionsOf.get(construct), ...options });
}

/** The options of the construct itself. */
export function ownOptions(construct: IConstruct): BridgeOptions {
  return optionsOf.get(construct) ?? {};
}

/** The options of a construct, merged with those of the constructs that contain it. */
export function effectiveOptions(construct: IConstruct): BridgeOptions {
  return construct.node.scopes.reduce<BridgeOptions>((outer, scope) => {
    const inner = ownOptions(scope);
    return {
      ...outer,
      ...inner,
      aliases: inner.aliases ?? [],
      ...(scope === construct ? {} : { import: undefined }),
      ...both('ignoreChanges', outer, inner),
      ...both('replaceOnChanges', outer, inner),
      ...both('dependsOn', outer, inner),
      ...(outer.await === undefined && inner.await === undefined ? {} : { await: { ...outer.await, ...inner.await } }),
    };
  }, {});
}

function both(
  field: 'ignoreChanges' | 'replaceOnChanges' | 'dependsOn',
  outer: BridgeOptions,
  inner: BridgeOptions,
): Partial<BridgeOptions> {
  const all = [...new Set([...(outer[field] ?? []), ...(inner[field] ?? [])])];
  return all.length === 0 ? {} : { [field]: all };
}

/** Finds the problems of an object whose Outputs are all known. */
type ResolvedCheck = (manifest: Manifest) => readonly Problem[];

const checks = new WeakMap<ApiObject, ResolvedCheck>();

/** Registers a check of an object that runs when its Outputs are known, before the object is registered. */
export function checkWhenResolved(construct: ApiObject, check: ResolvedCheck): void {
  checks.set(construct, check);
}

/**
 * An Output for `dependsOn` that runs an object's check before the object is registered. It fails with the
 * problems, or is an empty list. Undefined if the object has no check.
 *
 * @param resource name of the object's resource, for errors: the object's own name may be a secret
 */
export function resolvedCheck(
  construct: ApiObject,
  resource: string,
  inputs: pulumi.Inputs,
): pulumi.Output<pulumi.Resource[]> | undefined {
  const check = checks.get(construct);
  if (check === undefined) return undefined;
  const resolved = pulumi.output<object>(inputs);
  const secret = pulumi.isSecret(resolved);
  return resolved.apply(async (manifest) => {
    const problems = check(manifest as Manifest);
    if (problems.length === 0) return [];
    const shown = (await secret) ? problems.map(({ path: at }) => ({ path: at, message: HIDDEN })) : problems;
    throw new InvalidObjectError(`${construct.kind} ${resource}`, shown);
  });
}

const HIDDEN = 'is invalid; why is not said, because the object holds secrets';
