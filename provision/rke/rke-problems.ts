import type { Problem } from '../../constructs/kube/errors';
import type { Node, RkeInput } from '../cluster/cluster-input';

/** Problems of an input that only RKE has, with paths into the spec. */
export function rkeProblems({ version, nodes, options }: RkeInput): readonly Problem[] {
  const problem = rkeVersionProblem(version);
  return [
    ...(problem === undefined ? [] : [{ path: 'version', message: `${version} ${problem}` }]),
    ...bastionProblems(nodes),
    ...dnsProblems(options),
    ...networkPluginProblems(version, options.network?.plugin),
  ];
}

/**
 * Why RKE cannot install a version of Kubernetes for everyone, or undefined when it can. RKE has reached its
 * end: v1.31 and v1.32 are only for subscribers, and no version follows.
 */
export function rkeVersionProblem(version: string): string | undefined {
  const match = /^v([0-9]+)\.([0-9]+)\.([0-9]+)-rancher/.exec(version);
  if (match === null) return 'must be a version as RKE names it, such as v1.30.14-rancher1-1';
  const parts = match.slice(1).map(Number);
  const differing = LAST_FREE.findIndex((number, i) => parts[i] !== number);
  if (differing === -1 || (parts[differing] ?? 0) < (LAST_FREE[differing] ?? 0)) return undefined;
  return (
    `is newer than ${LAST_FREE_VERSION}, the last that RKE offers without a subscription, and RKE has ended: ` +
    `take ${LAST_FREE_VERSION} or older, or make a new cluster with the distribution rke2 and move over`
  );
}

/**
 * The last version of Kubernetes that RKE installs for everyone. Source: release notes of RKE v1.8.14, the
 * last release of RKE.
 *
 * @testonly
 */
export const LAST_FREE_VERSION = 'v1.30.14-rancher1-1';

const LAST_FREE = [1, 30, 14] as const;

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

/** RKE does not derive the address of DNS from the range of Services. */
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
function networkPluginProblems(version: string, plugin: string | undefined): Problem[] {
  const minor = Number(/^v1\.([0-9]+)\./.exec(version)?.[1] ?? '0');
  if (plugin !== 'weave' || minor < 30) return [];
  return [
    {
      path: 'rke.network.plugin',
      message: 'weave is only there up to Kubernetes v1.29; take canal, calico or flannel, or a version before v1.30',
    },
  ];
}
