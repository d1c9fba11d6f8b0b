import { cel } from '../core/cel';
import { defineKind } from '../core/kind';
import type { KindObject } from '../core/kind';
import { CustomResource } from '../crd';
import { clusterEffects, clusterReads } from './cluster-effects';
import { clusterSpec } from './cluster-spec';
import { clusterStatus } from './cluster-status';
import { Kubeconfig } from './kubeconfig';

/**
 * A Kubernetes cluster that is made and taken down by RKE, or installed as RKE2 or K3s on machines over SSH.
 *
 * Its one child is the Kubeconfig, rendered once there is a kubeconfig. The Secrets with the state and the kubeconfig are written by the
 * effects, under an owner reference that is not a controller's, so that they go with the Cluster. They are not among `owns`, which would
 * grant every Secret of the cluster: whoever runs the effects is granted Secrets by name and namespace.
 */
export const Cluster = defineKind({
  group: 'clusterprovisioner.rke.io',
  version: 'v1alpha1',
  kind: 'Cluster',
  plural: 'clusters',
  scope: 'Cluster',
  description: 'A Kubernetes cluster, made and taken down by RKE, or installed as RKE2 or K3s on machines over SSH.',
  spec: clusterSpec,
  status: clusterStatus,
  conditionTypes: [{ type: 'Provisioned', description: 'What this generation asks for was applied to every node.' }],
  lastUpdateTime: true,
  columns: [
    { name: 'Distribution', type: 'string', jsonPath: '.spec.distribution' },
    { name: 'Version', type: 'string', jsonPath: '.spec.version' },
    { name: 'Config', type: 'string', jsonPath: '.spec.configPath', priority: 1 },
    { name: 'Attempts', type: 'integer', jsonPath: '.status.attempts', priority: 1 },
    {
      name: 'Provisioned',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Provisioned")].status',
      description: 'Whether what is wanted was applied to every node.',
    },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why it is ready or not.',
    },
  ],
  // How a cluster was made decides how it is taken down.
  rules: [
    cel(
      'has(self.spec.nodes) == has(oldSelf.spec.nodes)',
      'a Cluster of nodes cannot become one of a cluster.yml, nor the reverse: make a new Cluster',
    ),
  ],
  // The name is the value of a label, part of the names of Secrets, and part of paths on the machines.
  names: { format: 'dns-subdomain', maxLength: 63 },
  // A domain and a name, as the API asks of finalizers. The removal runs before it is dropped.
  finalizer: { name: 'clusterprovisioner.rke.io/cluster', propagation: 'Foreground' },
  owns: [Kubeconfig.type],
  reads: clusterReads,
  effects: clusterEffects,
  samples: [{ name: 'clusteraws', labels: { rke: 'true' }, spec: { configPath: 'config/rkespec/cluster_aws.yml' } }],
  children(scope, self) {
    const secretRef = self.status?.kubeconfigRef;
    if (secretRef === undefined) return;
    const { name } = self.metadata;
    new CustomResource(scope, 'kubeconfig', { kind: Kubeconfig, metadata: { name }, spec: { secretRef } });
  },
});
export type Cluster = KindObject<typeof Cluster>;
