/** What machines do, by a word for it. */
export const ROLES = {
  all: ['controlplane', 'etcd', 'worker'],
  etcd: ['etcd'],
  api: ['controlplane'],
  agent: ['worker'],
} as const;
export type Role = keyof typeof ROLES;

/** Machines in the order of the spec, by their last number, with what they do. */
export type Spec = readonly (readonly [number: number, role: Role])[];

export const addressOf = (number: number): string => `10.0.0.${number}`;

/** What stands: clusters, nodes and members of the first one, and machines with software. */
export interface ClusterSnapshot {
  readonly clusters: number;
  readonly nodes: readonly string[];
  readonly members: readonly string[];
  readonly installed: readonly string[];
  readonly violations: readonly string[];
}

/** What {@link ClusterModel.state} is to be. @param left - machines that could not be uninstalled */
export const expectedState = (spec: Spec, left: readonly number[] = []): ClusterSnapshot => {
  const addresses = spec.map(([number]) => addressOf(number)).sort();
  return {
    clusters: 1,
    nodes: addresses,
    members: spec
      .filter(([, role]) => role === 'all' || role === 'etcd')
      .map(([number]) => addressOf(number))
      .sort(),
    installed: [...addresses, ...left.map(addressOf)].sort(),
    violations: [],
  };
};

/** Servers that do everything. */
export const servers = (...numbers: number[]): Spec => numbers.map((number) => [number, 'all'] as const);

/** The values on the stdin of a script. */
export const valuesIn = (stdin: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    stdin
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [
        line.slice(0, line.indexOf(' ')),
        Buffer.from(line.slice(line.indexOf(' ') + 1), 'base64').toString(),
      ]),
  );

/** The hosts of the URLs of API servers in a text. */
export const hostsOfUrls = (text: string): readonly string[] =>
  [...text.matchAll(/https:\/\/([0-9.]+):6443/g)].map(([, host]) => host ?? '');

export const wordsOf = (text: string): readonly string[] => text.split(' ').filter((word) => word !== '');

/** The API servers that a script was made to ask for a node. */
export const apiHostsAsked = (script: string): readonly string[] =>
  hostsOfUrls(/for server in (.*); do/.exec(script)?.[1] ?? '');

/** The members of etcd that a script was made to ask. */
export const etcdHostsAsked = (script: string): readonly string[] =>
  wordsOf(/ask_etcd (.*); then/.exec(script)?.[1] ?? '').filter((word) => !word.startsWith('$'));

/** How many of so many members of etcd are needed for a decision. */
export const quorum = (members: number): number => Math.floor(members / 2) + 1;
