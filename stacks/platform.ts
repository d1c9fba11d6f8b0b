import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import type { ApiObject } from 'cdk8s';
import type { AnyKind } from '../constructs/kind/kind';
import { PLATFORM_MANAGED_BY } from '../constructs/operator';
import type { Platform } from '../constructs/platform';
import { ConstructResources, KubernetesObject, resourceOptions } from './bridge';
import { PlatformOwner } from './platform-owner';
import { platformProviders, refuseDeleteUnreachable, type PlatformProviders } from './platform-providers';
import {
  apiObjectsIn,
  buildPlatform,
  inputsOf,
  shouldKeepNamespace,
  type PlatformComponentArgs,
} from './platform-args';

/**
 * The platform as Pulumi resources: namespace, CRDs, permissions, operators, guardrails.
 *
 * Guarantees:
 * - Resources are created in the order namespace, CRDs (served), permissions, operators (available), and
 *   destroyed in the reverse order. Objects that take {@link objectOptions} are created after the operators
 *   and deleted before them, so that the operators handle their finalizers.
 * - Resources that contain users' objects stay in the cluster when they leave the stack: CRDs, whose deletion
 *   would delete every object of their kinds; guarded namespaces that the platform created; and the
 *   operators' namespace unless `keepNamespace` is false. A later `up` takes them over again. To free the
 *   namespace and leave all that is in it to others, set `createNamespace: false`.
 * - If the kubeconfig leads to another cluster than the one with the platform, the run fails before anything
 *   changes: see `clusterIdentifier`. A preview reads only the cluster's identity, and with `monitoring` the
 *   CRDs of the Prometheus operator, without which it fails.
 *
 * Caveats: destroying the stack leaves CRDs and namespaces behind. `kubectl delete` removes them and all
 * objects in them.
 *
 * Errors: RunError if PULUMI_K8S_DELETE_UNREACHABLE is set; InvalidPropsError with everything that is wrong
 * with the platform; KubeconfigError if a kubeconfig leads to no cluster; BridgeError.
 */
export class PlatformComponent extends pulumi.ComponentResource {
  /** Namespace of the operators. */
  readonly namespace: pulumi.Output<string>;
  /** Names of the CRDs of the kinds that are installed, such as `helloapps.apps.anupam.com`. */
  readonly installedKinds: pulumi.Output<readonly string[]>;
  /** Versions that the API server serves, by name of the CRD. */
  readonly crdVersions: pulumi.Output<Readonly<Record<string, readonly string[]>>>;
  /** Image of each operator, by its name. */
  readonly operatorImages: pulumi.Output<Readonly<Record<string, string>>>;
  /** The provider of everything but CRDs; for objects that go to the same cluster. */
  readonly provider: pulumi.ProviderResource;
  /** The Deployments of the operators. */
  readonly operators: readonly KubernetesObject[];
  /** @internal */
  readonly owner: PlatformOwner;

  constructor(name: string, args: PlatformComponentArgs, opts: pulumi.ComponentResourceOptions = {}) {
    refuseDeleteUnreachable(name);
    const platform = buildPlatform(name, args);
    const keepsNamespace = shouldKeepNamespace(name, args);
    // It exists only once the platform's providers do.
    const owner: { current?: PlatformOwner } = {};
    const ownership: pulumi.ResourceTransformation = (resource) => owner.current?.transformation(resource);
    super('kindred:platform:PlatformComponent', name, inputsOf(args), {
      ...opts,
      transformations: [...(opts.transformations ?? []), platformTransformation(opts.parent), ownership],
    });
    const providers = platformProviders(name, args, { ...opts, parent: this }, keepsNamespace);
    this.provider = providers.main;
    setOptions(platform, providers, { keepsNamespace, protect: args.protect, timeoutSeconds: args.timeoutSeconds });
    requirePrometheusOperator(name, platform, this, opts);
    const { dependsOn, retainOnDelete } = opts;
    this.owner = new PlatformOwner(name, {
      ...{ provider: providers.main, kubeconfig: providers.kubeconfig, parent: this, retainOnDelete },
      timeoutSeconds: args.timeoutSeconds ?? DELETION_SECONDS,
    });
    owner.current = this.owner;
    const resources = new ConstructResources(
      name,
      { constructs: platform },
      {
        parent: this,
        transformations: [this.owner.choose(true)],
        ...(dependsOn === undefined ? {} : { dependsOn }),
        ...(retainOnDelete === undefined ? {} : { retainOnDelete }),
      },
    );
    this.operators = apiObjectsIn(platform)
      .filter(({ kind }) => kind === 'Deployment')
      .map((deployment) => resources.resourceOf(deployment));

    const kinds = args.operators.flatMap((operator) => operator.kinds);
    this.namespace = pulumi.output(args.namespace ?? platform.operatorNamespace);
    this.installedKinds = pulumi.output(kinds.map(({ crdName }) => crdName).sort());
    this.crdVersions = pulumi.output(versionsOf(kinds));
    this.operatorImages = pulumi.output(
      Object.fromEntries(args.operators.map((operator) => [operator.name, operator.image])),
    );
    this.registerOutputs({
      namespace: this.namespace,
      installedKinds: this.installedKinds,
      crdVersions: this.crdVersions,
      operatorImages: this.operatorImages,
    });
  }

  /** For Kubernetes the platform's own provider, even if the parent has another one. */
  override getProvider(moduleMember: string): pulumi.ProviderResource | undefined {
    // The field is not set yet while the component itself is registered.
    const own = this.provider as pulumi.ProviderResource | undefined;
    return (moduleMember.startsWith('kubernetes:') ? own : undefined) ?? super.getProvider(moduleMember);
  }

  /**
   * Options for objects of the kinds: on the platform's cluster, created after its operators and deleted
   * before them.
   */
  get objectOptions(): { readonly provider: pulumi.ProviderResource; readonly dependsOn: pulumi.Resource[] } {
    return { provider: this.provider, dependsOn: [...this.operators] };
  }
}

/** The nearest platform of each resource; a platform maps to itself. */
const platforms = new WeakMap<pulumi.Resource, pulumi.Resource>();

/**
 * The platform that contains a resource, however many components are in between. Undefined if there is none.
 */
export function enclosingPlatform(resource: pulumi.Resource): PlatformComponent | undefined {
  const platform = platforms.get(resource);
  return platform instanceof PlatformComponent ? platform : undefined;
}

/**
 * Sets the provider of all resources below a platform. Pulumi calls a transformation for the component itself
 * first, then for each resource below it. A component has no other way to pass on a provider that is its own
 * child.
 *
 * @param outer the platform's parent
 */
function platformTransformation(outer: pulumi.Resource | undefined): pulumi.ResourceTransformation {
  let platform: pulumi.Resource | undefined;
  return ({ resource, props, opts }) => {
    platform ??= resource;
    if (!platforms.has(resource)) platforms.set(resource, platform);
    if (opts.parent !== platform) return undefined;
    const provider = enclosingPlatform(platform)?.provider;
    if (provider !== undefined) return { props, opts: withProvider(opts, provider) };
    // One of the platform's own providers, which are created first. Earlier versions registered them beside
    // the component.
    const aliases = [...((opts.aliases ?? []) as pulumi.Alias[]), { parent: outer ?? pulumi.rootStackResource }];
    return { props, opts: { ...opts, aliases } };
  };
}

/** The options, with the provider added if they have no Kubernetes provider. */
function withProvider(
  opts: pulumi.ComponentResourceOptions,
  provider: pulumi.ProviderResource,
): pulumi.ComponentResourceOptions {
  const { provider: own, providers = [] } = opts;
  const given = Array.isArray(providers) ? providers : Object.values(providers);
  const isGiven = [...(own === undefined ? [] : [own]), ...given].some((one) => Provider.isInstance(one));
  return isGiven ? opts : { ...opts, providers: [...given, provider] };
}

/** How long Pulumi waits until an object is deleted, in seconds. */
const DELETION_SECONDS = 600;

/** How long the server may take to serve a CRD, in seconds. It is a matter of milliseconds. */
const ESTABLISHED_SECONDS = 120;

interface ResourceSettings {
  readonly keepsNamespace: boolean;
  readonly protect: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

function setOptions(platform: Platform, providers: PlatformProviders, settings: ResourceSettings): void {
  const { keepsNamespace, protect, timeoutSeconds } = settings;
  const { retained } = providers;
  for (const crd of platform.customResourceDefinitions) {
    retain(crd, retained);
    resourceOptions(crd, {
      await: { waitFor: 'condition=Established', timeoutSeconds: ESTABLISHED_SECONDS },
      ...(protect === undefined ? {} : { protect }),
    });
  }
  const guardrails = platform.node.tryFindChild('guardrails');
  for (const object of apiObjectsIn(platform)) {
    if (object.kind === 'Namespace') {
      const isGuarded = guardrails !== undefined && object.node.scopes.includes(guardrails);
      retain(object, isGuarded ? retained : providers.namespace, isGuarded || keepsNamespace);
    } else if (object.kind !== 'CustomResourceDefinition') {
      // In another namespace the operators have another Lease, so two of them would run at once. And a run
      // that was interrupted after it had created new objects could not be undone, since Pulumi deletes the
      // old ones last.
      resourceOptions(object, { deleteBeforeReplace: true });
    }
    // Pulumi would wait until a Service has pods, and with 0 replicas there are none. It waits for the
    // Deployments anyway.
    if (object.kind === 'Service') resourceOptions(object, { await: { skip: true } });
    if (object.kind === 'Deployment' && timeoutSeconds !== undefined) {
      resourceOptions(object, { await: { timeoutSeconds } });
    }
  }
}

const PROMETHEUS_OPERATOR = 'monitoring.coreos.com';

/**
 * Reads the CRDs of the Prometheus operator if the platform has objects of its kinds. So Pulumi reports at
 * once which of them the cluster lacks, instead of trying to create the objects for more than a minute. If
 * the platform depends on other resources, they may install these CRDs, so a preview does not read them then.
 */
function requirePrometheusOperator(
  name: string,
  platform: Platform,
  parent: PlatformComponent,
  { dependsOn }: pulumi.ComponentResourceOptions,
): void {
  if (dependsOn !== undefined && pulumi.runtime.isDryRun()) return;
  const known = new Map<string, KubernetesObject>();
  for (const object of apiObjectsIn(platform)) {
    if (!object.apiVersion.startsWith(`${PROMETHEUS_OPERATOR}/`)) continue;
    const crdName = `${object.kind.toLowerCase()}s.${PROMETHEUS_OPERATOR}`;
    const type = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' };
    const crd =
      known.get(crdName) ??
      new KubernetesObject(
        `${name}/needs-the-prometheus-operator/${crdName}`,
        type,
        // As a refresh finds them, so that it reports no change.
        { ...type, metadata: { name: crdName } },
        { parent, id: crdName, ...(dependsOn === undefined ? {} : { dependsOn }) },
      );
    known.set(crdName, crd);
    resourceOptions(object, { dependsOn: [crd] });
  }
}

/** Keeps an object in the cluster when it leaves the stack; a later `up` takes it over. */
function retain(object: ApiObject, provider: pulumi.ProviderResource, retainOnDelete = true): void {
  resourceOptions(object, { provider, ...(retainOnDelete ? { retainOnDelete } : {}) });
  // With the same field manager in every run, fields that an earlier run applied and this one leaves out are
  // removed instead of staying for ever.
  object.metadata.addAnnotation('pulumi.com/patchFieldManager', PLATFORM_MANAGED_BY);
}

function versionsOf(kinds: readonly AnyKind[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    kinds.map(({ crdName, version, versions }) => [
      crdName,
      [version, ...versions.filter(({ served }) => served).map((other) => other.version)],
    ]),
  );
}
