import { Provider, type ProviderArgs } from '@pulumi/kubernetes/provider';
import { getEnvBoolean } from '@pulumi/kubernetes/utilities';
import * as pulumi from '@pulumi/pulumi';
import { KubernetesObject, isDeferred, mutableContent } from './bridge';
import { minifyKubeconfig } from './kubeconfig';
import type { PlatformComponentArgs } from './platform-args';

/** The Pulumi providers through which a platform reaches its cluster. */
export interface PlatformProviders {
  /** Creates objects that must not exist yet. */
  readonly main: pulumi.ProviderResource;
  /**
   * Creates the operators' namespace; if the namespace is kept, also takes it over. It is separate whether
   * the namespace is kept or not: Pulumi replaces an object that gets another provider, so it would delete a
   * namespace that was taken over, with all that is in it.
   */
  readonly namespace: pulumi.ProviderResource;
  /**
   * Takes over objects that exist already: those that a destroyed stack left behind must not block the next
   * one.
   */
  readonly retained: pulumi.ProviderResource;
  /** What the providers were created from, reduced to the one cluster. Absent if they were given. */
  readonly kubeconfig?: pulumi.Output<string>;
}

type TargetArgs = Pick<
  PlatformComponentArgs,
  'kubeconfig' | 'context' | 'clusterIdentifier' | 'crdProvider' | 'namespaceProvider' | 'createNamespace'
>;

const upsert = {
  upsertExistingObjects: true,
  enablePatchForce: true,
  enableServerSideApply: true,
  ...mutableContent,
};

/**
 * The providers of a platform: created from the kubeconfig, or given by the caller.
 *
 * @param keepsNamespace whether the operators' namespace stays when the platform is deleted
 * @throws TypeError when providers are given for some of the objects only, or besides a kubeconfig; the
 *   parent's provider counts as given
 */
export function platformProviders(
  name: string,
  args: TargetArgs,
  opts: pulumi.ComponentResourceOptions,
  keepsNamespace: boolean,
): PlatformProviders {
  const { kubeconfig, context, clusterIdentifier, crdProvider, namespaceProvider } = args;
  const own = givenProvider(opts);
  // An explicit cluster takes precedence over the parent's provider.
  const parents =
    own === undefined && kubeconfig === undefined && context === undefined ? parentProvider(opts) : undefined;
  const given = own ?? parents;
  const hasTarget = [kubeconfig, context, clusterIdentifier].some((value) => value !== undefined);
  const hasOthers = [crdProvider, namespaceProvider].some((value) => value !== undefined);
  if (given === undefined && !hasOthers) return createProviders(name, args, opts, keepsNamespace);
  const whose = parents === undefined ? 'it has a provider' : 'its parent has a kubernetes provider';
  if (hasTarget) {
    throw new TypeError(
      `PlatformComponent ${name}: ${whose}, which knows the cluster; leave kubeconfig, context and clusterIdentifier out`,
    );
  }
  if (given === undefined || crdProvider === undefined) {
    const why = parents === undefined ? '' : `${whose}: `;
    throw new TypeError(
      `PlatformComponent ${name}: ${why}give both \`provider\` (among the options) and \`crdProvider\`, or neither and a kubeconfig or a ` +
        'context: CRDs need a provider of their own that takes over what exists',
    );
  }
  return { main: given, namespace: namespaceProvider ?? given, retained: crdProvider };
}

/**
 * Fails if a provider would be told to forget what it cannot reach. The variable is meant for one
 * `pulumi destroy`; in an `up`, Pulumi stores it with the provider, and from then on a refresh while the
 * cluster does not answer drops everything from the state.
 *
 * @throws RunError
 */
export function refuseDeleteUnreachable(name: string): void {
  if (getEnvBoolean('PULUMI_K8S_DELETE_UNREACHABLE') !== true) return;
  throw new pulumi.RunError(
    `PlatformComponent ${name}: PULUMI_K8S_DELETE_UNREACHABLE is set, which is for \`pulumi destroy\` only: \`pulumi up\` would store it, and a later refresh ` +
      'would drop from the state whatever the cluster does not answer for at that moment. Unset it',
  );
}

function givenProvider({ provider, providers }: pulumi.ComponentResourceOptions): pulumi.ProviderResource | undefined {
  if (provider !== undefined) return provider;
  if (Array.isArray(providers)) return providers.find((one) => Provider.isInstance(one));
  return providers?.['kubernetes'];
}

/** The provider that a resource below the parent would use. */
function parentProvider({ parent }: pulumi.ComponentResourceOptions): pulumi.ProviderResource | undefined {
  return parent?.getProvider('kubernetes:core/v1:Namespace');
}

/**
 * Options of the providers besides the cluster. Both set the same ones, so that the environment's have no
 * effect.
 */
const createOnly = { upsertExistingObjects: false, ...mutableContent };

function createProviders(
  name: string,
  args: TargetArgs,
  opts: pulumi.ComponentResourceOptions,
  keepsNamespace: boolean,
): PlatformProviders {
  const kubeconfig = kubeconfigOf(args);
  const { clusterIdentifier } = args;
  const before = providerOptions(opts);
  // Without an identifier it is the component's name: if it contained the names of project and stack, `pulumi
  // stack rename` would replace everything that is installed.
  const target = connection(kubeconfig, clusterIdentifier ?? name);
  const options = clusterIdentifier === undefined ? afterCheck(before, sameCluster(name, kubeconfig, before)) : before;
  const main = new Provider(`${name}-cluster`, { ...target, ...createOnly }, options);
  const forNamespace = { ...target, ...(keepsNamespace ? upsert : createOnly) };
  return {
    main,
    namespace: args.createNamespace === false ? main : new Provider(`${name}-namespace`, forNamespace, options),
    retained: new Provider(`${name}-retained`, { ...target, ...upsert }, options),
    kubeconfig,
  };
}

/** The options of a provider that is registered only if a check does not fail. */
function afterCheck(
  { dependsOn, ...options }: pulumi.ResourceOptions,
  check: pulumi.Output<readonly pulumi.Resource[]>,
): pulumi.ResourceOptions {
  // As a dependency, the check fails with its own message. As a part of an argument, it would be reported as
  // an argument that cannot be serialized, with a stack trace.
  const all = [check, ...(dependsOn === undefined ? [] : [dependsOn])] as unknown as pulumi.Input<pulumi.Resource>[];
  return { ...options, dependsOn: all };
}

/**
 * @throws KubeconfigError if the arguments are plain values; if they are Outputs, the result fails with it
 */
function kubeconfigOf({ kubeconfig, context }: TargetArgs): pulumi.Output<string> {
  const read = (text: string | undefined, named: string | undefined): string =>
    minifyKubeconfig({
      ...(text === undefined ? {} : { text }),
      ...(named === undefined ? {} : { context: named }),
    });
  if (isDeferred(kubeconfig) || isDeferred(context)) {
    return pulumi.secret(pulumi.all([kubeconfig, context]).apply(([text, named]) => read(text, named)));
  }
  return pulumi.secret(read(kubeconfig, context));
}

function providerOptions({ parent, dependsOn }: pulumi.ComponentResourceOptions): pulumi.ResourceOptions {
  return { ...(parent === undefined ? {} : { parent }), ...(dependsOn === undefined ? {} : { dependsOn }) };
}

/**
 * Its UID is commonly used as a cluster's identity: every cluster has this namespace, and it cannot be
 * deleted.
 */
const SYSTEM_NAMESPACE = 'kube-system';

/**
 * The arguments that connect a provider to a cluster: the kubeconfig says everything.
 *
 * Because of the identifier, the provider treats every change of the kubeconfig, such as a renewed
 * certificate, as an update. The empty context is for stacks that were created before there was an
 * identifier. On their first update, the provider compares the clusters of the two kubeconfigs, and one
 * cluster may be written in two ways. With a context that does not exist it finds nothing to compare; to
 * connect, it treats the empty context as none.
 * Source: pulumi-kubernetes, provider/pkg/provider, `DiffConfig`, `getActiveClusterFromConfig` and `Configure`.
 *
 * @param kubeconfig a minimal one, whose current context is the cluster's
 * @param identifier must stay the same as long as the objects of the provider are to stay
 */
function connection(kubeconfig: pulumi.Input<string>, identifier: string): ProviderArgs {
  return { kubeconfig: pulumi.secret(kubeconfig), context: '', clusterIdentifier: identifier };
}

/**
 * Checks by the UID of `kube-system` that a kubeconfig leads to the cluster that the platform was installed on.
 * The first run records the UID in the state, where it stays until the platform is destroyed.
 *
 * Guarantees: if it leads to another cluster, preview and `up` fail before any object of the platform is
 * changed, and say what to do. A move by replacement would delete the old objects after creating the new
 * ones, with credentials that may well lead to the new ones.
 *
 * Caveats: this sends a request to the cluster, in a preview too, which fails if there is no response. There
 * is no request if a preview does not know the kubeconfig yet, and none under Pulumi's mocks.
 *
 * @param kubeconfig a minimal one
 * @returns an empty list of dependencies, which fails with a RunError on another cluster
 */
function sameCluster(
  name: string,
  kubeconfig: pulumi.Output<string>,
  opts: pulumi.ResourceOptions,
): pulumi.Output<readonly pulumi.Resource[]> {
  const provider = new Provider(`${name}-identity`, connection(kubeconfig, name), opts);
  const type = { apiVersion: 'v1', kind: 'Namespace' };
  // The inputs are those that a refresh finds, so that it reports no change of an object that is only read.
  const inputs = { ...type, metadata: { name: SYSTEM_NAMESPACE } };
  const system = new KubernetesObject(`${name}-identity`, type, inputs, { ...opts, provider, id: SYSTEM_NAMESPACE });
  // Every object has a UID, except under mocks.
  const uid = system.metadata.apply((metadata) => (metadata as { readonly uid?: string } | undefined)?.uid ?? '');
  const installed = new pulumi.Stash(`${name}-identity`, { input: uid }, opts);
  // A stash's type does not say what is in it.
  const installedOn = installed.output as pulumi.Output<string>;
  return pulumi.all([kubeconfig, uid, installedOn]).apply(([text, found, before]) => {
    if (found !== '' && found !== before) throw clusterMismatch(name, text, found, before);
    return [];
  });
}

function clusterMismatch(name: string, kubeconfig: string, found: string, before: string): pulumi.RunError {
  const message =
    `PlatformComponent ${name}: the kubeconfig leads to another cluster than the one that the platform is installed on. The UID of the namespace ` +
    `${SYSTEM_NAMESPACE} is ${found} on ${hostOf(kubeconfig)}, and ${before} where the platform is. No object was changed.\n` +
    '  To move the platform: `pulumi destroy`, which takes it off its own cluster, whichever one the configuration names, and leaves CRDs and ' +
    'namespaces there; then `pulumi up`.\n' +
    '  If its own cluster is gone: `PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy`, then `pulumi up`.\n' +
    '  To have it on both clusters: a stack for each, `pulumi stack init`.';
  // Pulumi would print the stack: it hides that of a RunError only while the program's own code runs.
  return Object.assign(new pulumi.RunError(message), { stack: undefined });
}

/** The host of the server, without the rest of the URL, which may contain credentials. */
function hostOf(kubeconfig: string): string {
  const { clusters } = JSON.parse(kubeconfig) as { readonly clusters: readonly [{ cluster: { server: string } }] };
  return new URL(clusters[0].cluster.server).host;
}
