import type { RkeOptions } from '../cluster-input';
import { Lookup } from './yaml-text';
import type { DocumentObject } from './yaml-text';

type Services = NonNullable<RkeOptions['services']>;
type Snapshots = NonNullable<NonNullable<Services['etcd']>['snapshots']>;
type Strategy = NonNullable<RkeOptions['upgradeStrategy']>;

/** The field `services`. A service that nothing is said about is left out, so that RKE's own defaults hold. */
export function servicesYml({
  services = {},
  clusterCidr,
  serviceCidr,
  clusterDns,
  clusterDomain,
}: RkeOptions): DocumentObject | undefined {
  const { etcd, kubeApi, kubeController, scheduler, kubelet, kubeproxy } = services;
  return unlessEmpty({
    etcd: unlessEmpty({
      extra_args: etcd?.extraArgs,
      backup_config: etcd?.snapshots && snapshotsYml(etcd.snapshots),
    }),
    'kube-api': unlessEmpty({
      extra_args: kubeApi?.extraArgs,
      service_cluster_ip_range: serviceCidr,
      service_node_port_range: kubeApi?.serviceNodePortRange,
      always_pull_images: kubeApi?.alwaysPullImages,
      secrets_encryption_config: toggle(kubeApi?.secretsEncryption),
      audit_log: toggle(kubeApi?.auditLog),
    }),
    'kube-controller': unlessEmpty({
      extra_args: kubeController?.extraArgs,
      cluster_cidr: clusterCidr,
      service_cluster_ip_range: serviceCidr,
    }),
    scheduler: unlessEmpty({ extra_args: scheduler?.extraArgs }),
    kubelet: unlessEmpty({
      extra_args: kubelet?.extraArgs,
      cluster_domain: clusterDomain,
      cluster_dns_server: clusterDns,
      fail_swap_on: kubelet?.failSwapOn,
      generate_serving_certificate: kubelet?.generateServingCertificate,
    }),
    kubeproxy: unlessEmpty({ extra_args: kubeproxy?.extraArgs }),
  });
}

/**
 * The field `upgrade_strategy`. The inputs of a drain are given all or none: RKE fills in defaults only while `drain` is off, and of inputs
 * given in part it forgets some. Source: setNodeUpgradeStrategy and parseNodeDrainInput of RKE 1.6 (cluster/defaults.go, cluster/cluster.go).
 */
export function upgradeStrategyYml({ controlPlaneConcurrency, workerConcurrency, drain }: Strategy): DocumentObject {
  return {
    max_unavailable_controlplane: String(controlPlaneConcurrency),
    max_unavailable_worker: String(workerConcurrency),
    drain: drain?.enabled ?? false,
    node_drain_input: drain && {
      force: drain.force,
      ignore_daemonsets: drain.ignoreDaemonSets,
      delete_local_data: drain.deleteEmptyDirData,
      grace_period: drain.gracePeriodSeconds,
      timeout: drain.timeoutSeconds,
    },
  };
}

function snapshotsYml({ enabled, intervalHours, retention, s3 }: Snapshots): DocumentObject {
  const { credentialsSecretRef: credentials, caSecretRef: ca } = s3 ?? {};
  return {
    enabled,
    interval_hours: intervalHours,
    retention,
    // The field has no name of its own in RKE's type, so it goes by the Go field's name in lower case.
    s3backupconfig: s3 && {
      endpoint: s3.endpoint,
      region: s3.region,
      bucket_name: s3.bucket,
      folder: s3.folder,
      access_key: credentials && new Lookup({ secret: { ...credentials, key: 'accessKey' } }),
      secret_key: credentials && new Lookup({ secret: { ...credentials, key: 'secretKey' } }),
      custom_ca: ca && new Lookup({ secret: ca }),
    },
  };
}

const toggle = (enabled: boolean | undefined): DocumentObject | undefined =>
  enabled === undefined ? undefined : { enabled };

function unlessEmpty(fields: DocumentObject): DocumentObject | undefined {
  return Object.values(fields).some((field) => field !== undefined) ? fields : undefined;
}
