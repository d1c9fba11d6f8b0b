import * as pulumi from '@pulumi/pulumi';
import { provisionerKinds } from '../constructs/kinds';
import { defaultImage, defaultImageAdvice, provisioner } from '../constructs/platform';
import { version } from '../package.json';
import { PlatformComponent } from './platform';
import { KindComponent } from './kind-component';
import type { PlatformComponentArgs, PlatformOperatorArgs } from './platform-args';
import { RemoteCluster, type RemoteClusterArgs } from './remote-cluster/remote-cluster';
import type { ConfigValues } from './config/keys';
import { parseConfig } from './config/parse';

/** What another stack needs from this one. */
export interface ProgramOutputs {
  /**
   * Kubeconfig of the cluster, a secret. Absent when the configuration names only a context: Pulumi warns of
   * an output that is undefined.
   */
  readonly kubeconfig?: pulumi.Output<string>;
  readonly namespace: pulumi.Output<string>;
  readonly installedKinds: pulumi.Output<readonly string[]>;
  readonly crdVersions: pulumi.Output<Readonly<Record<string, readonly string[]>>>;
  readonly operatorImages: pulumi.Output<Readonly<Record<string, string>>>;
}

/** The namespace of all keys of the configuration, independent of the project's name. */
const NAMESPACE = 'kindred:';

/**
 * The checked configuration of the stack that is running.
 *
 * @throws ConfigError with everything that is wrong
 */
export function readConfig(): ConfigValues {
  // Pulumi's types do not declare it; there is no other way to know which keys are secret.
  const { isConfigSecret } = pulumi.runtime as unknown as { readonly isConfigSecret: (key: string) => boolean };
  const own = Object.entries(pulumi.runtime.allConfig()).filter(([key]) => key.startsWith(NAMESPACE));
  const name = (key: string): string => key.slice(NAMESPACE.length);
  return parseConfig({
    values: Object.fromEntries(own.map(([key, value]) => [name(key), value])),
    secretKeys: new Set(own.filter(([key]) => isConfigSecret(key)).map(([key]) => name(key))),
  });
}

/** Name of the platform, and of the stack's resources below it. */
const NAME = 'kindred';

/** The whole stack: the cluster, if its machines are configured; the platform; and the samples. */
export function program(config: ConfigValues): ProgramOutputs {
  warnOfDefaultImages(config);
  const cluster = remoteCluster(config);
  const kubeconfig = cluster?.kubeconfig ?? config.kubeconfig;
  const platform = new PlatformComponent(
    NAME,
    platformArgs(config, kubeconfig),
    cluster === undefined ? {} : { dependsOn: [cluster] },
  );
  addSamples(config, platform);
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig: pulumi.secret(kubeconfig) }),
    namespace: platform.namespace,
    installedKinds: platform.installedKinds,
    crdVersions: platform.crdVersions,
    operatorImages: platform.operatorImages,
  };
}

/** In the preview already, where no image is named: by the time that pods cannot start, everything else is installed. */
function warnOfDefaultImages({ provisioner: withProvisioner, replicas }: ConfigValues): void {
  const programs = withProvisioner ? (['operator', 'provisioner'] as const) : (['operator'] as const);
  for (const name of replicas === 0 ? [] : programs) {
    const key = `${NAMESPACE}${name}Image`;
    if (pulumi.runtime.allConfig()[key] !== undefined) continue;
    void pulumi.log.warn(defaultImageAdvice(name, defaultImage(name, version), `pulumi config set ${key} REF`));
  }
}

function remoteCluster(config: ConfigValues): RemoteCluster | undefined {
  const { cluster, sshKey, sshKeyPassphrase, clusterSecrets } = config;
  // The checked configuration of a cluster always has a key.
  if (cluster === undefined || sshKey === undefined) return undefined;
  const { name, ...described } = cluster;
  const secrets = Object.entries(clusterSecrets).map(([ref, values]) => [ref, secretValues(values)] as const);
  const args: RemoteClusterArgs = {
    ...described,
    clusterName: name,
    sshKey: pulumi.secret(sshKey),
    ...(sshKeyPassphrase === undefined ? {} : { sshKeyPassphrase: pulumi.secret(sshKeyPassphrase) }),
    secrets: Object.fromEntries(secrets),
    hostKeyChecking: config.hostKeyChecking ? 'pinned' : 'skip-insecure',
    protect: config.protectMachines,
  };
  return new RemoteCluster(name, args);
}

function secretValues(values: Readonly<Record<string, string>>): Readonly<Record<string, pulumi.Output<string>>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, pulumi.secret(value)]));
}

function platformArgs(config: ConfigValues, kubeconfig: pulumi.Input<string> | undefined): PlatformComponentArgs {
  const { cluster, context, watchNamespaces } = config;
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    // Unlike the kubeconfig, it is known from the start. Another cluster has another one, and no platform
    // yet.
    ...(cluster === undefined ? {} : { clusterIdentifier: cluster.name }),
    namespace: config.namespace,
    operators: operators(config),
    guardedNamespaces: guardedNamespaces(config),
    timeoutSeconds: config.timeoutSeconds,
    protect: config.protect,
    ...(watchNamespaces.length === 0 ? {} : { watchNamespaces }),
    ...(config.monitoring ? { monitoring: { labels: config.monitoringLabels } } : {}),
  };
}

/** The configured ones, and that of the samples. */
function guardedNamespaces({ guardedNamespaces: guarded, samples, samplesNamespace }: ConfigValues) {
  const names = guarded.map((entry) => (typeof entry === 'string' ? entry : entry.name));
  return !samples || names.includes(samplesNamespace)
    ? guarded
    : [...guarded, { name: samplesNamespace, create: true }];
}

/** The operator and the provisioner, which is separate because it alone has keys to machines. */
function operators(config: ConfigValues): readonly PlatformOperatorArgs[] {
  const { operatorImage, provisionerImage, replicas, kinds } = config;
  const operator = { name: 'operator', image: operatorImage, replicas, kinds };
  if (!config.provisioner) return [operator];
  const { namespace, provisionerSecretNamespaces: secretNamespaces } = config;
  const { provisionerConfigSecret: configSecretName, provisionerConfigFiles: configFiles } = config;
  return [
    operator,
    provisioner({
      ...{ image: provisionerImage, replicas, kinds: provisionerKinds, namespace, secretNamespaces },
      ...(configSecretName === undefined ? {} : { configSecretName }),
      ...(configFiles === undefined ? {} : { configFiles }),
    }),
  ];
}

/** Adds samples of the operator's kinds only: a sample of a Cluster would create a cluster. */
function addSamples(
  { samples, samplesNamespace, kinds, timeoutSeconds }: ConfigValues,
  platform: PlatformComponent,
): void {
  if (!samples) return;
  for (const kind of kinds) {
    for (const { name, labels, spec } of kind.samples) {
      new KindComponent(
        `sample-${kind.singular}-${name}`,
        {
          kind,
          metadata: {
            name,
            ...(kind.scope === 'Cluster' ? {} : { namespace: samplesNamespace }),
            ...(labels === undefined ? {} : { labels }),
          },
          ...(spec === undefined ? {} : { spec }),
          timeoutSeconds,
        },
        // Nothing waits for those with a finalizer: when the owner is deleted, no operator runs any more.
        { parent: platform, transformations: [platform.owner.choose(false)] },
      );
    }
  }
}
