import * as pulumi from '@pulumi/pulumi';
import type { ApiObject } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { InvalidObjectError, type Problem } from '../../constructs/kube/errors';
import type { Manifest } from './manifest';

/** How Pulumi waits for an object. */
export interface AwaitOptions {
  /** Not at all: the resource counts as ready once the server took it. @default false */
  readonly skip?: boolean;
  /** How long to wait for the object to become ready, or to go, in seconds. @default what the provider waits for its kind */
  readonly timeoutSeconds?: number;
  /**
   * What to wait for: `condition=Ready`, or `jsonpath={.status.phase}=Running`; of several, all.
   * Source: pulumi-kubernetes, annotation `pulumi.com/waitFor`.
   * @default what the provider knows of the kind
   */
  readonly waitFor?: string | readonly string[];
}

/** Pulumi options for the resources of a construct and those below it. What stands on an inner construct wins, unless said otherwise. */
export interface BridgeOptions {
  /** Refuse to delete it. It makes destroying the stack fail. @default false */
  readonly protect?: boolean;
  /** Leave the object in the cluster when it leaves the stack. @default false */
  readonly retainOnDelete?: boolean;
  /** Delete the old object before its replacement is created. @default what the provider finds necessary */
  readonly deleteBeforeReplace?: boolean;
  /** Fields to set at creation and to leave alone afterwards: `spec.replicas`. Adds to what stands on outer constructs. */
  readonly ignoreChanges?: readonly string[];
  /** Fields whose change replaces the object. Adds to what stands on outer constructs. */
  readonly replaceOnChanges?: readonly string[];
  /**
   * Where the construct stood before: its path below the root of the tree then, or any alias of Pulumi's. Constructs below it follow.
   * Only for the construct itself.
   */
  readonly aliases?: readonly (string | pulumi.Alias)[];
  /** The provider to use. @default that of the tree */
  readonly provider?: pulumi.ProviderResource;
  /** Resources of Pulumi's to wait for, besides what constructs depend on. Adds to what stands on outer constructs. */
  readonly dependsOn?: readonly pulumi.Input<pulumi.Resource>[];
  /** Outer and inner settings are merged. */
  readonly await?: AwaitOptions;
  /** Whether objects live in a namespace. @default known for Kubernetes' own kinds and for those whose CRD is in the tree */
  readonly scope?: 'Namespaced' | 'Cluster';
  /**
   * For ConfigMaps and Secrets: the name gets a hash of the content, and what refers to it in the tree follows, so that pods roll when the
   * content changes, and the old content stays until they did.
   * @default false: the name is as written, and the content changes in place
   */
  readonly contentHashedName?: boolean;
  /** For ConfigMaps and Secrets: sets `immutable`; a change of content then replaces the object. @default as the construct says */
  readonly immutable?: boolean;
  /** Id of an existing object to take over: `<namespace>/<name>`, or `<name>`. Only for the construct itself. */
  readonly import?: string | undefined;
}

const optionsOf = new WeakMap<IConstruct, BridgeOptions>();

/** Sets Pulumi options for the resources of a construct and those below it. Said twice of one construct, the later wins field by field. */
export function resourceOptions(construct: IConstruct, options: BridgeOptions): void {
  optionsOf.set(construct, { ...optionsOf.get(construct), ...options });
}

/** What was said of the construct itself. */
export function ownOptions(construct: IConstruct): BridgeOptions {
  return optionsOf.get(construct) ?? {};
}

/** What holds for a construct, with what was said of those that contain it. */
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

/** Finds what is wrong with an object whose Outputs are all known. */
type ResolvedCheck = (manifest: Manifest) => readonly Problem[];

const checks = new WeakMap<ApiObject, ResolvedCheck>();

/** Has an object checked again when its Outputs are known, before it is registered. */
export function checkWhenResolved(construct: ApiObject, check: ResolvedCheck): void {
  checks.set(construct, check);
}

/**
 * What the registration of an object is to wait for so that it was checked: fails with what is wrong, and is otherwise nothing to depend on.
 * Undefined where there is nothing to check.
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
