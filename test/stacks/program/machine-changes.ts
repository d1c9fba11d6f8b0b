import { parseConfig } from '../../../stacks/config/parse';
import { program } from '../../../stacks/program';
import { ClusterModel } from '../../support/cluster-model';
import { addressOf, servers, expectedState, type Role, type Spec } from '../../support/cluster-specs';
import { modelCommands } from '../../support/model-commands';
import { Engine, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';

const MACHINE_ROLES: Readonly<Record<Role, readonly string[]>> = {
  all: ['controlplane', 'etcd', 'worker'],
  etcd: ['etcd'],
  api: ['controlplane'],
  agent: ['worker'],
};
/** A private key that has that text. */
export const KEY = (text: string): string => `-----BEGIN OPENSSH PRIVATE KEY-----\n${text}\n`;

/** The machines of a cluster, and what is said of all of them. */
export interface Machines {
  readonly spec: Spec;
  readonly options?: object;
}

/** The value of `kindred:cluster`. */
export const clusterOf = ({ spec, options = {} }: Machines): object => ({
  ...{ name: 'prod', distribution: 'k3s', version: 'v1.30.4+k3s1' },
  nodes: spec.map(([number, role]) => ({
    ...{ address: addressOf(number), user: 'root', hostKey: `ssh-ed25519 ${String(number).padStart(68, 'A')}` },
    roles: MACHINE_ROLES[role],
  })),
  options: { registrationAddress: 'k8s.example.com', ...options },
});

/** A cluster of one server. */
export const one = servers(1);
const base: Readonly<Record<string, unknown>> = {
  ...{ cluster: clusterOf({ spec: one }), sshKey: KEY('one'), protectMachines: false },
  kinds: ['HelloApp'],
};

/** A value of a key, and the machines that it makes. */
export interface Choice {
  readonly value: unknown;
  /** @default one server */
  readonly spec?: Spec;
}

/** A key, from a value to another, and what is set besides. */
export type Change = readonly [what: string, key: string, before: Choice, after: Choice, besides: object];

/** The value of `kindred:cluster` that makes those machines. */
export const machines = (spec: Spec): Choice => ({ value: clusterOf({ spec }), spec });

/** The title of a test of a {@link Change}. */
export const CHANGE = '%s (kindred:%s), and back';

/** Expects that machines go from a value of a key to another, and back, and that the platform on them stays. */
export async function expectThereAndBack(...[, key, before, after, besides]: Change): Promise<void> {
  const model = new ClusterModel();
  const cluster = new MemoryCluster('https://prod.test');
  const commands = modelCommands(model, { kubeconfig: MemoryCluster.kubeconfig({ it: cluster }) });
  const engine = new Engine({ providers: [commands, memoryClusters(cluster)] });
  let platform: object | undefined;
  for (const { value, spec = one } of [before, after, before]) {
    const run = stack({ ...base, ...besides, [key]: value });
    model.wanted = new Set(spec.map(([number]) => addressOf(number)));
    await engine.up(run);
    expect(model.state).toEqual(expectedState(spec));
    expect((await engine.up(run)).summary).toEqual([]);
    platform ??= cluster.uids;
    expect(cluster.uids).toEqual(platform);
  }
}

const stack = (values: Readonly<Record<string, unknown>>) => () => {
  const texts = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, typeof value === 'string' ? value : JSON.stringify(value)] as const],
  );
  const secretKeys = new Set(['sshKey', 'sshKeyPassphrase', 'clusterSecrets']);
  return { ...program(parseConfig({ values: Object.fromEntries(texts), secretKeys })) };
};
