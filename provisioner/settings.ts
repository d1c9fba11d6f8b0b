import { Kubeconfig } from '../constructs/kinds/kubeconfig';
import type { KubeObject } from '../constructs/kube/kube-object';

// How the command installs the provisioner.
export { provisioner as operator } from '../constructs/platform';

/** A Kubeconfig of the local control plane itself. There is no Cluster, which would need machines. */
export function localSamples({
  kubeconfig,
  namespace,
}: {
  readonly kubeconfig: string;
  readonly namespace: string;
}): readonly KubeObject[] {
  const ref = { namespace, name: 'this-kubeconfig' };
  const { apiVersion, kind } = Kubeconfig;
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: ref, stringData: { kubeconfig } },
    { apiVersion, kind, metadata: { name: 'this' }, spec: { secretRef: { ...ref, key: 'kubeconfig' } } },
  ];
}
