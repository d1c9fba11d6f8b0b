import * as pulumi from '@pulumi/pulumi';
import { provisioner } from '../constructs/platform';
import { PlatformComponent } from './platform';
import { KindComponent } from './kind-component';
import type { PlatformComponentArgs, PlatformOperatorArgs } from './platform-args';
import { RemoteCluster, type RemoteClusterArgs } from './remote-cluster/remote-cluster';
import type { StackConfig } from './config/parse';

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

/** Name of the platform, and of the stack's resources below it. */
const NAME = 'kindred';

/** The whole stack: the cluster, if its machines are configured; the platform; and the samples. */
export function program(config: StackConfig): ProgramOutputs {
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

function remoteCluster(config: StackConfig): RemoteCluster | undefined {
  const { cluster, sshKey, sshKeyPassphrase, clusterSecrets } = config;
  // The checked configuration of a cluster always has a key.
  if (cluster === undefined || sshKey === undefined) return undefined;
  const secrets = Object.entries(clusterSecrets).map(([ref, values]) => [ref, secretValues(values)] as const);
  const args: RemoteClusterArgs = {
    ...cluster.args,
    clusterName: cluster.name,
    sshKey: pulumi.secret(sshKey),
    ...(sshKeyPassphrase === undefined ? {} : { sshKeyPassphrase: pulumi.secret(sshKeyPassphrase) }),
    secrets: Object.fromEntries(secrets),
    hostKeyChecking: config.hostKeyChecking ? 'pinned' : 'skip-insecure',
    protect: config.protectMachines,
  };
  return new RemoteCluster(cluster.name, args);
}

function secretValues(values: Readonly<Record<string, string>>): Readonly<Record<string, pulumi.Output<string>>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, pulumi.secret(value)]));
}

function platformArgs(config: StackConfig, kubeconfig: pulumi.Input<string> | undefined): PlatformComponentArgs {
  const { cluster, context, watchNamespaces, monitoringLabels } = config;
  return {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    // Unlike the kubeconfig, it is known from the start. Another cluster has another one, and no platform
    // yet.
    ...(cluster === undefined ? {} : { clusterIdentifier: cluster.name }),
    namespace: config.namespace,
    operators: operators(config),
    guardedNamespaces: config.guardedNamespaces,
    timeoutSeconds: config.timeoutSeconds,
    protect: config.protect,
    ...(watchNamespaces === undefined ? {} : { watchNamespaces }),
    ...(monitoringLabels === undefined ? {} : { monitoring: { labels: monitoringLabels } }),
  };
}

/** The operator and the provisioner, which is separate because it alone has keys to machines. */
function operators(config: StackConfig): readonly PlatformOperatorArgs[] {
  const { operatorImage, provisionerImage, replicas, kinds, provisionerKinds } = config;
  const operator = { name: 'operator', image: operatorImage, replicas, kinds };
  if (provisionerImage === undefined) return [operator];
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
function addSamples({ samplesNamespace, kinds, timeoutSeconds }: StackConfig, platform: PlatformComponent): void {
  if (samplesNamespace === undefined) return;
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
        { parent: platform },
      );
    }
  }
}
