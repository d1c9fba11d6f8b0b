import { parseConfig } from '../../../stacks/config';
import { program } from '../../../stacks/program';
import { ClusterModel } from '../../support/cluster-model';
import { addressOf, servers, wantedState } from '../../support/cluster-specs';
import type { Role, Spec } from '../../support/cluster-specs';
import { modelCommands } from '../../support/model-commands';
import { Engine, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';

/** The keys that the machines of a stack are made from, each from each value to another, and back: machines stay, and so does the platform on them. */
jest.setTimeout(240_000);

const MACHINE_ROLES: Readonly<Record<Role, readonly string[]>> = {
  all: ['controlplane', 'etcd', 'worker'],
  etcd: ['etcd'],
  api: ['controlplane'],
  agent: ['worker'],
};
const KEY = (text: string): string => `-----BEGIN OPENSSH PRIVATE KEY-----\n${text}\n`;
const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };
const password = (text: string): object => ({ 'infra/registry': { username: 'reader', password: text } });

interface Machines {
  readonly spec: Spec;
  readonly options?: object;
}

/** The value of `kindred:cluster`. */
const clusterOf = ({ spec, options = {} }: Machines): object => ({
  ...{ name: 'prod', distribution: 'k3s', version: 'v1.30.4+k3s1' },
  nodes: spec.map(([number, role]) => ({
    ...{ address: addressOf(number), user: 'root', hostKey: `ssh-ed25519 ${String(number).padStart(68, 'A')}` },
    roles: MACHINE_ROLES[role],
  })),
  options: { registrationAddress: 'k8s.example.com', ...options },
});

const one = servers(1);
const base: Readonly<Record<string, unknown>> = {
  ...{ cluster: clusterOf({ spec: one }), sshKey: KEY('one'), protectMachines: false },
  kinds: ['HelloApp'],
};
const withAgent: Spec = [...one, [2, 'agent']];

/** A value of a key, and the machines that it makes. */
interface Choice {
  readonly value: unknown;
  /** @default one server */
  readonly spec?: Spec;
}
type Change = readonly [what: string, key: string, before: Choice, after: Choice, besides: object];

const machines = (spec: Spec): Choice => ({ value: clusterOf({ spec }), spec });
const withSan = clusterOf({ spec: one, options: { tlsSans: ['a.example.com'] } });
const withRegistry = { cluster: clusterOf({ spec: one, options: { registries: [registry] } }) };
const changes: readonly Change[] = [
  ['one machine more', 'cluster', machines(one), machines(withAgent), {}],
  ['another order of servers', 'cluster', machines(servers(1, 2, 3)), machines(servers(3, 1, 2)), {}],
  ['an option', 'cluster', machines(one), { value: withSan }, {}],
  ['another key', 'sshKey', { value: KEY('one') }, { value: KEY('two') }, {}],
  ['a passphrase', 'sshKeyPassphrase', { value: undefined }, { value: 'passphrase' }, {}],
  ['another password', 'clusterSecrets', { value: password('one') }, { value: password('two') }, withRegistry],
  ['no pinned keys', 'hostKeyChecking', { value: true }, { value: false }, {}],
  ['protection', 'protectMachines', { value: false }, { value: true }, {}],
];

test.each(changes)('%s (kindred:%s), and back', async (_, key, before, after, besides) => {
  const model = new ClusterModel();
  const cluster = new MemoryCluster('https://prod.test');
  const commands = modelCommands(model, { kubeconfig: MemoryCluster.kubeconfig({ it: cluster }) });
  const engine = new Engine({ providers: [commands, memoryClusters(cluster)] });
  let platform: object | undefined;
  for (const { value, spec = one } of [before, after, before]) {
    const run = stack({ ...base, ...besides, [key]: value });
    model.wanted = new Set(spec.map(([number]) => addressOf(number)));
    await engine.up(run);
    expect(model.state).toEqual(wantedState(spec));
    expect((await engine.up(run)).summary).toEqual([]);
    platform ??= cluster.uids;
    expect(cluster.uids).toEqual(platform);
  }
});

const stack = (values: Readonly<Record<string, unknown>>) => () => {
  const texts = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, typeof value === 'string' ? value : JSON.stringify(value)] as const],
  );
  const secretKeys = new Set(['sshKey', 'sshKeyPassphrase', 'clusterSecrets']);
  return { ...program(parseConfig({ values: Object.fromEntries(texts), secretKeys })) };
};
