import type { Problem } from '../../kube/errors';
import type { ClusterInput, InstallerSource } from '../cluster-input';

/** What is wrong with options that each by itself is valid. */
export function optionProblems(input: ClusterInput): readonly Problem[] {
  return [...registrationProblems(input), ...drainProblems(input), ...installerProblems(input)];
}

/** Nodes join at one address for as long as the cluster lives, and that of a machine goes with the machine. */
function registrationProblems(input: ClusterInput): Problem[] {
  if (input.distribution === 'rke' || input.options.registrationAddress !== undefined) return [];
  const servers = input.nodes.filter(({ roles }) => roles.includes('controlplane') || roles.includes('etcd'));
  if (servers.length < 2) return [];
  const message =
    `is needed with ${servers.length} servers: a name or an address in front of all of them (a load balancer, a virtual address, ` +
    "or DNS) that outlives each. To do without, give the first server's address";
  return [{ path: `${input.distribution}.registrationAddress`, message }];
}

function drainProblems({ distribution, options }: ClusterInput): Problem[] {
  const drain = options.upgradeStrategy?.drain;
  if (drain === undefined) return [];
  const path = `${distribution}.upgradeStrategy.drain`;
  const problems: Problem[] = [];
  if (!drain.enabled) {
    const asked =
      drain.force || drain.deleteEmptyDirData || drain.gracePeriodSeconds !== -1 || drain.timeoutSeconds !== 120;
    if (!asked) return [];
    return [
      { path: `${path}.enabled`, message: 'is false, so that the other settings of drain do nothing: set it to true' },
    ];
  }
  if (!drain.ignoreDaemonSets) {
    const message = 'must be true: every node has pods of DaemonSets (the network is one), and draining refuses them';
    problems.push({ path: `${path}.ignoreDaemonSets`, message });
  }
  if (drain.gracePeriodSeconds >= drain.timeoutSeconds) {
    const message = `must be more than gracePeriodSeconds (${drain.gracePeriodSeconds}), or draining ends before pods have`;
    problems.push({ path: `${path}.timeoutSeconds`, message });
  }
  return problems;
}

const PATH = /^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/;
const URL = /^https?:\/\/[A-Za-z0-9.-]+(:[0-9]{1,5})?(\/[A-Za-z0-9._~/%+-]*)?$/;

function installerProblems({ distribution, installer }: ClusterInput): Problem[] {
  if (installer === undefined) return [];
  if (distribution === 'rke') {
    return [{ path: 'installer', message: 'is for RKE2 and K3s; RKE installs nothing on machines but containers' }];
  }
  const checks: readonly (readonly [keyof InstallerSource, RegExp, string])[] = [
    ['url', URL, 'a URL such as https://mirror.example.com/install.sh'],
    ['path', PATH, 'an absolute path of letters, digits, "_", "-" and "."'],
    ['artifacts', PATH, 'an absolute path of letters, digits, "_", "-" and "."'],
    ['sha256', /^[0-9a-fA-F]{64}$/, 'a SHA-256 in hexadecimal: 64 digits'],
  ];
  const problems = checks.flatMap(([field, pattern, what]): Problem[] => {
    const value = installer[field];
    return value === undefined || pattern.test(value)
      ? []
      : [{ path: `installer.${field}`, message: `must be ${what}` }];
  });
  if (installer.url?.startsWith('http://') === true && installer.sha256 === undefined) {
    const message =
      'is fetched by http, and run as root: whoever is on the network can put a script of their own in its place. Give it with https, or say ' +
      'in installer.sha256 which script it is';
    problems.push({ path: 'installer.url', message });
  }
  if (installer.url !== undefined && installer.path !== undefined) {
    problems.push({ path: 'installer', message: 'has url and path; give one of them' });
  }
  return problems;
}
