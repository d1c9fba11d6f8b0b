import { servers } from '../../support/cluster-specs';
import { CHANGE, KEY, clusterOf, expectThereAndBack, machines, one } from './machine-changes';
import type { Change } from './machine-changes';

// The gate keeps one of these: machine-keys.test.ts.

/** The keys that the machines of a stack are made from, each from each value to another, and back: machines stay, and so does the platform on them. */
jest.setTimeout(900_000);

const registry = { host: 'registry.example.com', credentialsSecretRef: { namespace: 'infra', name: 'registry' } };
const password = (text: string): object => ({ 'infra/registry': { username: 'reader', password: text } });
const withSan = clusterOf({ spec: one, options: { tlsSans: ['a.example.com'] } });
const withRegistry = { cluster: clusterOf({ spec: one, options: { registries: [registry] } }) };
const changes: readonly Change[] = [
  ['another order of servers', 'cluster', machines(servers(1, 2, 3)), machines(servers(3, 1, 2)), {}],
  ['an option', 'cluster', machines(one), { value: withSan }, {}],
  ['another key', 'sshKey', { value: KEY('one') }, { value: KEY('two') }, {}],
  ['a passphrase', 'sshKeyPassphrase', { value: undefined }, { value: 'passphrase' }, {}],
  ['another password', 'clusterSecrets', { value: password('one') }, { value: password('two') }, withRegistry],
  ['no pinned keys', 'hostKeyChecking', { value: true }, { value: false }, {}],
  ['protection', 'protectMachines', { value: false }, { value: true }, {}],
];

test.each(changes)(CHANGE, expectThereAndBack);
