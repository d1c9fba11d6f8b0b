import { Namespace } from '@pulumi/kubernetes/core/v1';
import { Provider, type ProviderArgs } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { mutableContent } from './bridge';
import { minifyKubeconfig } from './kubeconfig';
import type { PlatformComponentArgs } from './platform-args';

/** The ways to the cluster. */
export interface PlatformProviders {
  /** Creates what must not exist yet. */
  readonly main: pulumi.ProviderResource;
  /**
   * Creates the operators' namespace, and takes it over where it is kept. One of its own, whether it is kept or not: Pulumi replaces an object
   * that gets another provider, and would delete the namespace with all that is in it once it was taken over.
   */
  readonly namespace: pulumi.ProviderResource;
  /** Takes over what exists already: what stays behind when the stack is destroyed must not keep the next one from being made. */
  readonly retained: pulumi.ProviderResource;
}

type TargetArgs = Pick<
  PlatformComponentArgs,
  'kubeconfig' | 'context' | 'clusterIdentifier' | 'crdProvider' | 'namespaceProvider' | 'createNamespace'
>;

/** What a provider is made of besides the cluster: the same options are set on both, whatever the environment says. */
const createOnly = { upsertExistingObjects: false, ...mutableContent };
const upsert = {
  upsertExistingObjects: true,
  enablePatchForce: true,
  enableServerSideApply: true,
  ...mutableContent,
};

/**
 * The providers of a platform: made from the kubeconfig, or those that were given.
 *
 * @param keepsNamespace whether the operators' namespace stays when the platform goes
 * @throws TypeError when a provider is given for some of it only, or besides a kubeconfig; one of the parent's counts as given
 */
export function platformProviders(
  name: string,
  args: TargetArgs,
  opts: pulumi.ComponentResourceOptions,
  keepsNamespace: boolean,
): PlatformProviders {
  const { kubeconfig, context, clusterIdentifier, crdProvider, namespaceProvider } = args;
  const own = givenProvider(opts);
  // A cluster that was named is meant, whatever the parent has.
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

function givenProvider({ provider, providers }: pulumi.ComponentResourceOptions): pulumi.ProviderResource | undefined {
  if (provider !== undefined) return provider;
  if (Array.isArray(providers)) return providers.find((one) => Provider.isInstance(one));
  return providers?.['kubernetes'];
}

/** What a resource below the parent would go to. */
function parentProvider({ parent }: pulumi.ComponentResourceOptions): pulumi.ProviderResource | undefined {
  return parent?.getProvider('kubernetes:core/v1:Namespace');
}

function createProviders(
  name: string,
  args: TargetArgs,
  opts: pulumi.ComponentResourceOptions,
  keepsNamespace: boolean,
): PlatformProviders {
  const options = providerOptions(opts);
  const target = targetOf(name, args, options);
  const main = new Provider(`${name}-cluster`, { ...target, ...createOnly }, options);
  const forNamespace = { ...target, ...(keepsNamespace ? upsert : createOnly) };
  return {
    main,
    namespace: args.createNamespace === false ? main : new Provider(`${name}-namespace`, forNamespace, options),
    retained: new Provider(`${name}-retained`, { ...target, ...upsert }, options),
  };
}

function targetOf(name: string, args: TargetArgs, options: pulumi.ResourceOptions): ProviderArgs {
  const kubeconfig = kubeconfigOf(args);
  const { clusterIdentifier } = args;
  if (clusterIdentifier !== undefined) return connection(kubeconfig, clusterIdentifier);
  // The component's name alone: with the names of project and stack in it, `pulumi stack rename` would replace all that is installed.
  return connection(assertSameCluster(name, kubeconfig, options), name);
}

/** @throws KubeconfigError where it is known already; else the Output fails with it */
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

/** Whether a value may be unknown in a preview. */
function isDeferred<T>(value: pulumi.Input<T> | undefined): value is Promise<T> | pulumi.OutputInstance<T> {
  return typeof value === 'object' && value !== null;
}

function providerOptions({ parent, dependsOn }: pulumi.ComponentResourceOptions): pulumi.ResourceOptions {
  return { ...(parent === undefined ? {} : { parent }), ...(dependsOn === undefined ? {} : { dependsOn }) };
}

/** The namespace whose UID is customarily a cluster's identity: each cluster has it from the start, and nobody can delete it. */
const SYSTEM_NAMESPACE = 'kube-system';

/**
 * What a provider is told of a cluster: all of it stands in the kubeconfig.
 *
 * The identifier makes the provider take every change of the kubeconfig for an update, which a renewed certificate is. The empty context
 * is for stacks from before there was an identifier: for once, the provider compares the clusters of the two kubeconfigs, however the same
 * cluster is written in them, and finds none to compare where a context that does not exist is named. To connect, it takes an empty one for none.
 * Source: pulumi-kubernetes, provider/pkg/provider, `DiffConfig`, `getActiveClusterFromConfig` and `Configure`.
 *
 * @param kubeconfig a minimal one: its current context is the one that is meant
 * @param identifier must stay the same as long as the objects of the provider are to stay
 */
function connection(kubeconfig: pulumi.Input<string>, identifier: string): ProviderArgs {
  return { kubeconfig: pulumi.secret(kubeconfig), context: '', clusterIdentifier: identifier };
}

/**
 * The kubeconfig again, once it is known to lead to the cluster that the platform was installed on, by the UID of `kube-system`. The first
 * run writes that down in the state, where it stays until the platform is destroyed.
 *
 * Guarantees: where it leads to another cluster, preview and `up` fail before anything of the platform is changed, and say what to do. Moving
 * by replacement would delete objects after their copies were made, with credentials that may well lead to the copies.
 *
 * Caveats: the cluster is asked, in a preview too; one that does not answer fails it. Not asked is a cluster whose kubeconfig a preview does not know
 * yet, and none under Pulumi's mocks.
 *
 * @param kubeconfig a minimal one
 */
function assertSameCluster(
  name: string,
  kubeconfig: pulumi.Output<string>,
  opts: pulumi.ResourceOptions,
): pulumi.Output<string> {
  const provider = new Provider(`${name}-identity`, connection(kubeconfig, name), opts);
  const system = Namespace.get(`${name}-identity`, SYSTEM_NAMESPACE, { ...opts, provider });
  // Every object has a UID, but those of mocks.
  const uid = system.metadata.apply((metadata) => (metadata as { readonly uid?: string } | undefined)?.uid ?? '');
  const installed = new pulumi.Stash(`${name}-identity`, { input: uid }, opts);
  // The types say nothing of what a stash holds.
  const installedOn = installed.output as pulumi.Output<string>;
  return pulumi.all([kubeconfig, uid, installedOn]).apply(([text, found, before]) => {
    if (found !== '' && found !== before) throw new pulumi.RunError(clusterMismatch(name, text, found, before));
    return text;
  });
}

function clusterMismatch(name: string, kubeconfig: string, found: string, before: string): string {
  return (
    `PlatformComponent ${name}: the kubeconfig leads to another cluster than the one that the platform is installed on. The UID of the namespace ` +
    `${SYSTEM_NAMESPACE} is ${found} on ${hostOf(kubeconfig)}, and ${before} where the platform is. Nothing was changed.\n` +
    '  To move the platform: `pulumi destroy`, which takes it off its own cluster, whichever one the configuration names, and leaves CRDs and ' +
    'namespaces there; then `pulumi up`.\n' +
    '  If its own cluster is gone: `PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy`, then `pulumi up`.\n' +
    '  To have it on both clusters: a stack for each, `pulumi stack init`.'
  );
}

/** Without what else may stand in a URL. */
function hostOf(kubeconfig: string): string {
  const { clusters } = JSON.parse(kubeconfig) as { readonly clusters: readonly [{ cluster: { server: string } }] };
  return new URL(clusters[0].cluster.server).host;
}
