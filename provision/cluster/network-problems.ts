import type { Problem } from '../../constructs/kube/errors';
import type { ClusterInput } from './cluster-input';
import { cidrContains, cidrsOverlap, parseIp, parseCidr, type Cidr } from './ip';
import { ipProblems } from './node-problems';

/** Problems of the address ranges of pods and Services, and of other addresses among the options. */
export function networkProblems(input: ClusterInput): readonly Problem[] {
  const { pods, services, dns, paths } = networksOf(input);
  const problems = [
    ...cidrProblems(pods, paths.pods),
    ...cidrProblems(services, paths.services),
    ...dns.flatMap((text, i) => ipProblems(`${paths.dns}${dns.length > 1 ? `[${i}]` : ''}`, text)),
    ...serverAddressProblems(input),
    ...nodePortProblems(input),
  ];
  if (problems.length > 0) return problems;
  const podRanges = parseCidrs(pods.length === 0 ? ['10.42.0.0/16'] : pods);
  const serviceRanges = parseCidrs(services.length === 0 ? ['10.43.0.0/16'] : services);
  return [
    ...addressFamilyProblems(podRanges, serviceRanges, paths.services),
    ...overlapProblems(podRanges, serviceRanges, input, paths),
    ...dns.flatMap((text) => {
      const ip = parseIp(text);
      if (ip === undefined || serviceRanges.some((range) => cidrContains(range, ip))) return [];
      return [{ path: paths.dns, message: `${text} is not inside the addresses of Services; give one that is` }];
    }),
  ];
}

interface Networks {
  readonly pods: readonly string[];
  readonly services: readonly string[];
  readonly dns: readonly string[];
  /** Paths of these three fields in the spec. */
  readonly paths: { readonly pods: string; readonly services: string; readonly dns: string };
}

function networksOf(input: ClusterInput): Networks {
  const list = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value]);
  if (input.distribution === 'rke') {
    const { clusterCidr, serviceCidr, clusterDns } = input.options;
    const paths = { pods: 'rke.clusterCidr', services: 'rke.serviceCidr', dns: 'rke.clusterDns' };
    return { pods: list(clusterCidr), services: list(serviceCidr), dns: list(clusterDns), paths };
  }
  const { clusterCidrs = [], serviceCidrs = [], clusterDns = [] } = input.options;
  const at = input.distribution;
  const paths = { pods: `${at}.clusterCidrs`, services: `${at}.serviceCidrs`, dns: `${at}.clusterDns` };
  return { pods: clusterCidrs, services: serviceCidrs, dns: clusterDns, paths };
}

const parseCidrs = (texts: readonly string[]): readonly Cidr[] =>
  texts.map(parseCidr).filter((range) => range !== undefined);

function cidrProblems(texts: readonly string[], path: string): Problem[] {
  const bad = texts.filter((text) => parseCidr(text) === undefined);
  const problems = bad.map((text) => ({ path, message: `"${text}" is no range of addresses, such as 10.42.0.0/16` }));
  const [first, second] = parseCidrs(texts);
  if (first !== undefined && second !== undefined && first.ip.length === second.ip.length) {
    problems.push({ path, message: 'two ranges must be one of IPv4 and one of IPv6' });
  }
  return problems;
}

function serverAddressProblems(input: ClusterInput): Problem[] {
  const { distribution, options } = input;
  const registration = input.distribution === 'rke' ? undefined : input.options.registrationAddress;
  return [
    ...(registration === undefined ? [] : ipProblems(`${distribution}.registrationAddress`, registration)),
    ...(options.tlsSans ?? []).flatMap((text, i) => ipProblems(`${distribution}.tlsSans[${i}]`, text)),
  ];
}

const MAX_PORT = 65535;

function nodePortProblems(input: ClusterInput): Problem[] {
  const [path, range] =
    input.distribution === 'rke'
      ? ['rke.services.kubeApi', input.options.services?.kubeApi?.serviceNodePortRange]
      : [input.distribution, input.options.serviceNodePortRange];
  if (range === undefined) return [];
  const [first = 0, last = 0] = range.split('-').map(Number);
  // The schema reports a text that is no range at all.
  if (Number.isNaN(first) || Number.isNaN(last) || (first <= last && last <= MAX_PORT)) return [];
  const message = `${range} is no range of ports: give the first and then the last of them, up to ${MAX_PORT}, such as 30000-32767`;
  return [{ path: `${path}.serviceNodePortRange`, message }];
}

function addressFamilyProblems(pods: readonly Cidr[], services: readonly Cidr[], path: string): Problem[] {
  const families = (list: readonly Cidr[]): string =>
    list.map(({ ip }) => (ip.length === 32 ? 'IPv4' : 'IPv6')).join(', ');
  if (families(pods) === families(services)) return [];
  const message = `pods have ${families(pods)}, Services ${families(services)}: give both the same, in the same order`;
  return [{ path, message }];
}

function overlapProblems(
  pods: readonly Cidr[],
  services: readonly Cidr[],
  { nodes }: ClusterInput,
  paths: Networks['paths'],
): Problem[] {
  const problems: Problem[] = [];
  if (pods.some((pod) => services.some((service) => cidrsOverlap(pod, service)))) {
    problems.push({
      path: paths.services,
      message: 'overlaps with the addresses of pods; they must have none in common',
    });
  }
  nodes.forEach(({ address, internalAddress }, i) => {
    const ip = parseIp(internalAddress ?? address);
    const field = internalAddress === undefined ? 'address' : 'internalAddress';
    if (ip === undefined) return;
    for (const [list, what] of [
      [pods, 'pods'],
      [services, 'Services'],
    ] as const) {
      if (!list.some((range) => cidrContains(range, ip))) continue;
      const message = `is inside the addresses of ${what}; machines need others, or set ${paths[list === pods ? 'pods' : 'services']}`;
      problems.push({ path: `nodes[${i}].${field}`, message });
    }
  });
  return problems;
}
