import { Namespace } from '@pulumi/kubernetes/core/v1';
import { Provider } from '@pulumi/kubernetes/provider';
import type { ProviderArgs } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';

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
export function connection(kubeconfig: pulumi.Input<string>, identifier: string): ProviderArgs {
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
export function onItsCluster(
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
    if (found !== '' && found !== before) throw new pulumi.RunError(otherCluster(name, text, found, before));
    return text;
  });
}

function otherCluster(name: string, kubeconfig: string, found: string, before: string): string {
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
