/** Problems of a cluster's options, of its version, and of fields that its schemas reject. */

import type { z } from 'zod';
import { nodes } from '../../constructs/kinds/cluster-node';
import { VERSION_MARKERS } from '../../constructs/kinds/cluster-spec';
import { k3sOptions, rke2Options, rkeOptions } from '../../constructs/kinds/cluster-options';
import type { Problem } from '../../constructs/kube/errors';
import { nameProblem } from '../../constructs/kube/names';
import type { ClusterInput, InstallerSource } from './cluster-input';

/** Problems of options that are each valid by themselves. */
export function optionProblems(input: ClusterInput): readonly Problem[] {
  return [...registrationProblems(input), ...drainProblems(input), ...installerProblems(input)];
}

/**
 * Nodes join at one address for the lifetime of the cluster, and the address of a machine ends with the
 * machine.
 */
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

const PATH_PATTERN = /^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/;
const URL_PATTERN = /^https?:\/\/[A-Za-z0-9.-]+(:[0-9]{1,5})?(\/[A-Za-z0-9._~/%+-]*)?$/;

function installerProblems({ distribution, installer }: ClusterInput): Problem[] {
  if (installer === undefined) return [];
  if (distribution === 'rke') {
    return [{ path: 'installer', message: 'is for RKE2 and K3s; RKE installs nothing on machines but containers' }];
  }
  const checks: readonly (readonly [keyof InstallerSource, RegExp, string])[] = [
    ['url', URL_PATTERN, 'a URL such as https://mirror.example.com/install.sh'],
    ['path', PATH_PATTERN, 'an absolute path of letters, digits, "_", "-" and "."'],
    ['artifacts', PATH_PATTERN, 'an absolute path of letters, digits, "_", "-" and "."'],
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

/** Problems of the version, by itself and as an upgrade of the installed one. */
export function versionProblems(input: ClusterInput, previous?: ClusterInput): readonly Problem[] {
  const { distribution, version } = input;
  const wanted = parseVersion(version);
  if (wanted === undefined || !version.includes(VERSION_MARKERS[distribution])) {
    return [
      {
        path: 'version',
        message: `"${version}" is no version of ${distribution}, which have "${VERSION_MARKERS[distribution]}" in them`,
      },
    ];
  }
  const installed = previous === undefined ? undefined : parseVersion(previous.version);
  if (previous === undefined || installed === undefined || previous.distribution !== distribution) return [];
  const message = versionSkewProblem(installed, wanted, previous.version);
  return message === undefined ? [] : [{ path: 'version', message }];
}

/**
 * Control planes are upgraded one minor version at a time, and never back. Source: the version skew policy of
 * Kubernetes.
 */
function versionSkewProblem(installed: Version, wanted: Version, name: string): string | undefined {
  if (compareVersions(wanted, installed) < 0) {
    return `is older than ${name}, which is installed: a cluster does not go back. Restore a snapshot of then instead`;
  }
  if (wanted.minor <= installed.minor + 1) return undefined;
  return `skips a minor version: ${name} is installed. Go to a v1.${installed.minor + 1} first`;
}

interface Version {
  readonly minor: number;
  /** Sort key: minor, patch, candidate or final, revision. */
  readonly order: readonly number[];
}

const PATTERN = /^v1[.]([0-9]+)[.]([0-9]+)(?:-rc([0-9]+))?(?:-rancher([0-9]+)-([0-9]+)|[+](?:rke2r|k3s)([0-9]+))$/;

function parseVersion(version: string): Version | undefined {
  const match = PATTERN.exec(version);
  if (match === null) return undefined;
  const [minor = 0, patch = 0, candidate = Infinity, ...revision] = match
    .slice(1)
    .map((part: string | undefined) => (part === undefined ? undefined : Number(part)));
  return { minor, order: [minor, patch, candidate, ...revision.map((number) => number ?? 0)] };
}

function compareVersions(a: Version, b: Version): number {
  const at = a.order.findIndex((number, i) => number !== b.order[i]);
  return at === -1 ? 0 : Math.sign((a.order[at] ?? 0) - (b.order[at] ?? 0));
}

/**
 * Values that the schemas reject; those that they accept are safe in scripts. For inputs that no Cluster
 * validated.
 */
export function schemaProblems(input: ClusterInput): readonly Problem[] {
  const name = nameProblem(input.name, { format: 'dns-subdomain', maxLength: 63 });
  return [
    ...(name === undefined ? [] : [{ path: 'name', message: name }]),
    ...schemaIssues(nodes.safeParse(input.nodes), 'nodes'),
    ...schemaIssues(OPTIONS[input.distribution].safeParse(input.options), input.distribution),
  ];
}

const OPTIONS = { rke: rkeOptions, rke2: rke2Options, k3s: k3sOptions };

function schemaIssues(result: z.ZodSafeParseResult<unknown>, root: string): Problem[] {
  if (result.success) return [];
  return result.error.issues.map(({ path, message }) => ({
    path: path.reduce<string>((at, key) => (typeof key === 'number' ? `${at}[${key}]` : `${at}.${String(key)}`), root),
    message,
  }));
}
