import type { Problem } from '../../kube/errors';
import type { Node, RkeInput } from '../cluster-input';
import { versionProblem } from './versions';

/** What only RKE minds in an input, with paths into the spec. */
export function rkeProblems({ version, nodes, options }: RkeInput): readonly Problem[] {
  const problem = versionProblem(version);
  return [
    ...(problem === undefined ? [] : [{ path: 'version', message: `${version} ${problem}` }]),
    ...bastionProblems(nodes),
    ...dnsProblems(options),
    ...pluginProblems(version, options.network?.plugin),
  ];
}

function bastionProblems(nodes: readonly Node[]): Problem[] {
  const first = nodes[0]?.bastion;
  return nodes.flatMap(({ bastion }, i) => {
    const fields = (['address', 'port', 'user', 'sshKeySecretRef'] as const).filter(
      (field) => JSON.stringify(bastion?.[field]) !== JSON.stringify(first?.[field]),
    );
    if (fields.length === 0) return [];
    const what = bastion === undefined || first === undefined ? '' : ` (${fields.join(', ')})`;
    const message =
      `differs from that of nodes[0]${what}, but RKE goes to all nodes through one bastion, with one key, or to all without: ` +
      'give all nodes the same';
    return [{ path: `nodes[${i}].bastion`, message }];
  });
}

/** RKE does not derive the DNS' address from the range of Services. */
function dnsProblems({ serviceCidr, clusterDns }: RkeInput['options']): Problem[] {
  if (serviceCidr === undefined || serviceCidr === '10.43.0.0/16' || clusterDns !== undefined) return [];
  return [
    {
      path: 'rke.clusterDns',
      message: `is needed with serviceCidr ${serviceCidr}: RKE would use 10.43.0.10; give an address inside the range, usually its tenth`,
    },
  ];
}

/** Source: isWeaveSupportedK8sVersion of RKE 1.6 (cluster/validation.go). */
function pluginProblems(version: string, plugin: string | undefined): Problem[] {
  const minor = Number(/^v1\.([0-9]+)\./.exec(version)?.[1] ?? '0');
  if (plugin !== 'weave' || minor < 30) return [];
  return [
    {
      path: 'rke.network.plugin',
      message: 'weave is only there up to Kubernetes v1.29; take canal, calico or flannel, or a version before v1.30',
    },
  ];
}
