import * as pulumi from '@pulumi/pulumi';
import type { ApiObject } from 'cdk8s';
import type { IConstruct } from 'constructs';
import type { Problem } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';
import type { ResourceScope } from '../../constructs/kube/resource-type';
import { builtInScope, definedKind, otherBuiltInVersions, scopesOfCrds } from './built-in-kinds';
import { applyContentHashNames } from './content-hash';
import { buildDependencyGraph } from './dependency-graph';
import { groupKind, withMetadata, type Manifest, type RenderedObject } from './manifest';
import { effectiveOptions, type AwaitOptions, type BridgeOptions } from './options';
import { resolveTokens } from './resolve-tokens';
import { BridgeError, renderTree } from './render-tree';
import { currentTokens, containsToken, type TokenEntry } from './tokens';

/** An object to register. */
export interface PlannedObject {
  readonly construct: ApiObject;
  /** Path of the construct below the root. */
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** The manifest, with Outputs at its leaves. */
  readonly inputs: pulumi.Inputs;
  readonly options: BridgeOptions;
  /** Constructs of the tree that it waits for. */
  readonly after: readonly ApiObject[];
  /** Resources of other trees that it waits for. */
  readonly outside: readonly pulumi.Resource[];
  /** Whether it contains Outputs. */
  readonly open: boolean;
  /** `apiVersion`s under which the same object may have been registered before. */
  readonly otherVersions: readonly string[];
}

/** A tree to plan. */
interface PlanInputs {
  readonly tree: string;
  readonly root: IConstruct;
  /** Tokens created while the tree was built: each must be used somewhere in it. */
  readonly made: ReadonlySet<TokenEntry>;
  readonly namespace: string | undefined;
  readonly registered: (object: ApiObject) => pulumi.Resource | undefined;
}

/**
 * The objects to register for a tree, in the order of registration.
 *
 * @throws BridgeError with everything that is wrong
 */
export function planResources({ tree, root, made, namespace, registered }: PlanInputs): readonly PlannedObject[] {
  const rendered = renderTree(root);
  fail(tree, rendered.problems);
  const identified = resolveScopes(rendered.objects, namespace);
  const hashed = applyContentHashNames(tree, identified.objects);
  const { objects, references } = hashed;
  const graph = buildDependencyGraph({ root, objects, references, registered });
  const placed = objects.map(({ construct, path, manifest }) =>
    resolveTokens(
      currentTokens(),
      `${tree}/${path}`,
      withAwaitAnnotations(manifest, effectiveOptions(construct).await),
    ),
  );
  fail(tree, [
    ...identified.problems,
    ...hashed.problems,
    ...graph.problems,
    ...placed.flatMap(({ problems }, i) => problems.map((problem) => within(objects[i], problem))),
    ...unusedTokenProblems(made, new Set(placed.flatMap(({ used }) => [...used]))),
  ]);
  const versions = versionsOf(objects.map(({ manifest }) => manifest));
  return graph.order.flatMap((i) => {
    const object = objects[i];
    if (object === undefined) return [];
    const { construct, path, manifest } = object;
    return {
      construct,
      path,
      apiVersion: manifest.apiVersion,
      kind: manifest.kind,
      inputs: withSecrets(manifest, placed[i]?.value as pulumi.Inputs),
      open: (placed[i]?.used.size ?? 0) > 0,
      options: effectiveOptions(construct),
      after: (graph.dependencies[i] ?? []).flatMap((to) => objects[to]?.construct ?? []),
      outside: [...(graph.outside[i] ?? [])],
      otherVersions: otherVersions(manifest, versions),
    };
  });
}

function fail(tree: string, problems: readonly Problem[]): void {
  if (problems.length > 0) throw new BridgeError(tree, problems);
}

/**
 * The objects with their namespaces set, and the problems of those whose name, namespace or scope is unclear.
 */
interface ScopeResolution {
  readonly objects: readonly RenderedObject[];
  readonly problems: readonly Problem[];
}

/**
 * Sets the namespace of each namespaced object, and drops that of cluster-scoped ones, without a request to
 * the cluster.
 *
 * @param namespace for namespaced objects that do not set one
 */
function resolveScopes(objects: readonly RenderedObject[], namespace: string | undefined): ScopeResolution {
  const crds = scopesOfCrds(objects.map(({ manifest }) => manifest));
  const problems: Problem[] = [];
  const identified = objects.map((object) => {
    const { construct, path, manifest } = object;
    const scope = effectiveOptions(construct).scope ?? scopeOf(manifest, crds);
    const message = problemOf(manifest, scope, namespace);
    if (message !== undefined) problems.push({ path, message });
    return { ...object, manifest: inScope(manifest, scope, namespace) };
  });
  return { objects: identified, problems: [...problems, ...duplicates(identified)] };
}

function scopeOf(manifest: Manifest, crds: ReadonlyMap<string, ResourceScope>): ResourceScope | undefined {
  const known = builtInScope(manifest) ?? crds.get(groupKind(manifest));
  return known ?? (manifest.metadata.namespace === undefined ? undefined : 'Namespaced');
}

function inScope(manifest: Manifest, scope: ResourceScope | undefined, namespace: string | undefined): Manifest {
  if (scope === 'Cluster') {
    return manifest.metadata.namespace === undefined ? manifest : withMetadata(manifest, { namespace: undefined });
  }
  return manifest.metadata.namespace === undefined && namespace !== undefined && scope !== undefined
    ? withMetadata(manifest, { namespace })
    : manifest;
}

function problemOf(
  manifest: Manifest,
  scope: ResourceScope | undefined,
  namespace: string | undefined,
): string | undefined {
  const { kind, apiVersion, metadata } = manifest;
  if (containsToken(kind) || containsToken(apiVersion))
    return 'its apiVersion or kind is an Output; both must be known';
  if (typeof metadata.name !== 'string' || metadata.name === '') {
    return `the ${kind} has no metadata.name; name it, since a name of Pulumi's making would differ from what synth shows`;
  }
  const object = `${kind} "${metadata.name}"`;
  if (scope === undefined) {
    return (
      `it is not known whether ${object} (${apiVersion}) lives in a namespace: give it one, put its CRD into the tree, or say ` +
      'resourceOptions(construct, { scope })'
    );
  }
  if (scope === 'Namespaced' && metadata.namespace === undefined && namespace === undefined) {
    return `${object} has no namespace; set metadata.namespace, or \`namespace\` of the tree`;
  }
  return undefined;
}

/**
 * Problems with objects that occur twice: two resources for one object would overwrite each other in every
 * run.
 */
function duplicates(objects: readonly RenderedObject[]): readonly Problem[] {
  const first = new Map<string, string>();
  return objects.flatMap(({ path, manifest }) => {
    const { name, namespace } = manifest.metadata;
    const id = JSON.stringify([groupKind(manifest), namespace, name]);
    const other = first.get(id);
    if (other === undefined) {
      first.set(id, path);
      return [];
    }
    const message = `it is the same object as ${other}: ${manifest.kind} "${String(name)}"`;
    return [{ path, message }];
  });
}

function within(object: RenderedObject | undefined, { path, message }: Problem): Problem {
  return { path: `${object?.path ?? ''}#${path}`, message };
}

function unusedTokenProblems(made: ReadonlySet<TokenEntry>, used: ReadonlySet<TokenEntry>): readonly Problem[] {
  const missing = [...made].filter((entry) => !used.has(entry)).length;
  if (missing === 0) return [];
  const message =
    `${missing} of the tokens made for this tree ${missing === 1 ? 'stands' : 'stand'} in none of its objects: used in a construct ` +
    'outside of it, changed by code that looked at the value (a hash, a calculation), or not used; make tokens only where they are used';
  return [{ path: '', message }];
}

/**
 * The annotations by which the provider knows what to wait for.
 * Source: pulumi-kubernetes documentation, "Kubernetes annotations": `pulumi.com/skipAwait`,
 * `pulumi.com/waitFor`.
 */
function withAwaitAnnotations(manifest: Manifest, options: AwaitOptions | undefined): Manifest {
  const { skip, waitFor } = options ?? {};
  const added: Readonly<Record<string, string>> = {
    ...(skip === true ? { 'pulumi.com/skipAwait': 'true' } : {}),
    ...(waitFor === undefined
      ? {}
      : { 'pulumi.com/waitFor': typeof waitFor === 'string' ? waitFor : JSON.stringify(waitFor) }),
  };
  if (Object.keys(added).length === 0) return manifest;
  const annotations = Object.entries({ ...manifest.metadata.annotations, ...added });
  return withMetadata(manifest, {
    annotations: Object.fromEntries(annotations.sort(([a], [b]) => (a < b ? -1 : 1))),
  });
}

/** Makes the values of a Secret secret, but not its keys. */
function withSecrets(manifest: Manifest, inputs: pulumi.Inputs): pulumi.Inputs {
  if (groupKind(manifest) !== '/Secret') return inputs;
  const fields = ['data', 'stringData'].filter((field) => inputs[field] !== undefined);
  return { ...inputs, ...Object.fromEntries(fields.map((field) => [field, secretLeaves(inputs[field])])) };
}

function secretLeaves(value: unknown): unknown {
  if (pulumi.Output.isInstance(value) || !isObject(value)) return pulumi.secret(value);
  return Object.fromEntries(Object.entries(value).map(([key, leaf]) => [key, pulumi.secret(leaf)]));
}

/**
 * The other `apiVersion`s of the same object, for a kind whose CRD is in the tree or that is Kubernetes' own.
 */
function otherVersions(manifest: Manifest, ofCrds: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const known = ofCrds.get(groupKind(manifest));
  return known?.filter((version) => version !== manifest.apiVersion) ?? otherBuiltInVersions(manifest);
}

/** All `apiVersion`s of the kinds whose CRDs are in the tree. */
function versionsOf(manifests: readonly Manifest[]): ReadonlyMap<string, readonly string[]> {
  return new Map(
    manifests.flatMap((manifest): [string, readonly string[]][] => {
      const defined = definedKind(manifest);
      const versions = isObject(manifest['spec']) ? manifest['spec']['versions'] : undefined;
      if (defined === undefined || !Array.isArray(versions)) return [];
      const group = defined.slice(0, defined.lastIndexOf('/'));
      const names = versions.flatMap((version: unknown) =>
        isObject(version) && typeof version['name'] === 'string' ? [version['name']] : [],
      );
      return [[defined, names.map((name) => `${group}/${name}`)]];
    }),
  );
}
