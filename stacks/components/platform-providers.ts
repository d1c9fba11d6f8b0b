import { Provider } from '@pulumi/kubernetes/provider';
import type { ProviderArgs } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import type { PlatformComponentArgs } from './platform-args';

/** The two ways to the cluster. */
export interface PlatformProviders {
  /** Creates what must not exist yet. */
  readonly main: pulumi.ProviderResource;
  /** Takes over what exists already: what stays behind when the stack is destroyed must not keep the next one from being made. */
  readonly retained: pulumi.ProviderResource;
}

type TargetArgs = Pick<PlatformComponentArgs, 'kubeconfig' | 'context' | 'clusterIdentifier' | 'crdProvider'>;

/** What a provider is made of besides the cluster: the same options are set on both, whatever the environment says. */
const careful = { upsertExistingObjects: false };
const takesOver = { upsertExistingObjects: true, enablePatchForce: true, enableServerSideApply: true };

/**
 * The providers of a platform: made from the kubeconfig, or those that were given.
 *
 * @throws TypeError when a provider is given for one of the two only, or besides a kubeconfig
 */
export function platformProviders(
  name: string,
  args: TargetArgs,
  opts: pulumi.ComponentResourceOptions,
): PlatformProviders {
  const given = givenProvider(opts);
  const hasTarget = [args.kubeconfig, args.context, args.clusterIdentifier].some((value) => value !== undefined);
  if (given === undefined && args.crdProvider === undefined) return madeProviders(name, args, opts);
  if (hasTarget) {
    throw new TypeError(
      `PlatformComponent ${name}: it has a provider, which knows the cluster; leave kubeconfig, context and clusterIdentifier out`,
    );
  }
  if (given === undefined || args.crdProvider === undefined) {
    throw new TypeError(
      `PlatformComponent ${name}: give both \`provider\` (among the options) and \`crdProvider\`, or neither and a kubeconfig or a ` +
        'context: CRDs need a provider of their own that takes over what exists',
    );
  }
  return { main: given, retained: args.crdProvider };
}

function givenProvider({ provider, providers }: pulumi.ComponentResourceOptions): pulumi.ProviderResource | undefined {
  if (provider !== undefined) return provider;
  if (Array.isArray(providers)) return providers.find((one) => Provider.isInstance(one));
  return providers?.['kubernetes'];
}

function madeProviders(name: string, args: TargetArgs, opts: pulumi.ComponentResourceOptions): PlatformProviders {
  const options = providerOptions(opts);
  const target = targetOf(name, args);
  return {
    main: new Provider(`${name}-cluster`, { ...target, ...careful }, options),
    retained: new Provider(`${name}-retained`, { ...target, ...takesOver }, options),
  };
}

function targetOf(name: string, { kubeconfig, context, clusterIdentifier }: TargetArgs): ProviderArgs {
  // The component's name alone: Pulumi compares it with nothing but what this provider had before, and another one replaces all that is
  // installed. With the names of project and stack in it, `pulumi stack rename` would do that.
  const identifier = clusterIdentifier ?? (isLater(kubeconfig) ? name : undefined);
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig: pulumi.secret(kubeconfig) }),
    ...(context === undefined ? {} : { context }),
    ...(identifier === undefined ? {} : { clusterIdentifier: identifier }),
  };
}

/** Whether a value may be unknown in a preview. */
function isLater(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function providerOptions({ parent, dependsOn }: pulumi.ComponentResourceOptions): pulumi.ResourceOptions {
  return { ...(parent === undefined ? {} : { parent }), ...(dependsOn === undefined ? {} : { dependsOn }) };
}
