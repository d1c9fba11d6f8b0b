import type * as StructuralSchema from '../../../constructs/kind/schema/structural-schema';
import { ConfigError, remedyOf } from '../../../stacks/config/parse';
import { SSH_KEY, cluster, config } from './parsed';

// In other words than its own: what it says must not decide what there is to do.
jest.mock('../../../constructs/kind/schema/structural-schema', () => {
  const actual = jest.requireActual<typeof StructuralSchema>('../../../constructs/kind/schema/structural-schema');
  const reworded: typeof actual.unknownFields = (...args) =>
    actual.unknownFields(...args).map((problem) => ({ ...problem, message: 'nobody knows it' }));
  return { ...actual, unknownFields: reworded };
});

const first = cluster.nodes[0];

function failure(values: object, secretKeys: readonly string[]): ConfigError {
  try {
    config({ sshKey: SSH_KEY, ...values }, ['sshKey', ...secretKeys]);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('nothing is wrong');
}

/** What is to be done about a cluster, by key. */
const remedies = (wrong: object): readonly (readonly [string, string])[] =>
  failure({ cluster: { ...cluster, ...wrong } }, []).problems.map((problem) => [problem.path, remedyOf(problem)]);

describe('a field that nobody knows, or a machine that there is not, is taken away', () => {
  test.each([
    ['beside the fields', { configPath: 'x' }, 'configPath'],
    ['in the options', { options: { flannel: 'x' } }, 'options.flannel'],
    ['in a list', { nodes: [{ ...first, adress: 'x' }] }, 'nodes[0].adress'],
    ['of the installer', { installer: { urll: 'x' } }, 'installer.urll'],
    ['lost', { lost: ['10.0.0.9'] }, 'lost[0]'],
    ['removable', { removable: ['10.0.0.9'] }, 'removable[0]'],
  ])('%s', (_, wrong, path) => {
    expect(remedies(wrong)).toContainEqual([`cluster.${path}`, `pulumi config rm --path 'kindred:cluster.${path}'`]);
  });
});

describe('what is wrong or missing is set', () => {
  test.each([
    ['of a wrong type', { nodes: 'a' }, 'cluster.nodes'],
    ['missing', { name: undefined }, 'cluster.name'],
    ['a distribution that there is not', { distribution: 'k4s' }, 'cluster.distribution'],
    ['refused by the schema', { version: 'v1.30' }, 'cluster.version'],
    ['refused in the options', { options: { clusterDomain: '!' } }, 'cluster.options.clusterDomain'],
    ['refused by the component', { nodes: [{ ...first, name: 'Bad Name' }] }, 'cluster.nodes[0].name'],
  ])('%s', (_, wrong, key) => {
    expect(remedies(wrong)).toContainEqual([key, `pulumi config set --path 'kindred:${key}' VALUE`]);
  });
});

test('what is wrong with the cluster as a whole is set in one of its fields', () => {
  expect(remedies({ distribution: 'rke2' })).toEqual([
    ['cluster', `pulumi config set --path 'kindred:cluster["KEY"]' VALUE`],
  ]);
});

test('fields that nobody knows and values that are wrong, at once: to each its own', () => {
  expect(remedies({ version: 'v1.30', options: { flannel: 'x' } })).toEqual([
    ['cluster.options.flannel', "pulumi config rm --path 'kindred:cluster.options.flannel'"],
    ['cluster.version', "pulumi config set --path 'kindred:cluster.version' VALUE"],
  ]);
});

describe('the message about a missing host key has the command that reads it where the machine listens', () => {
  const bastion = { address: 'jump.example.com', user: 'ops', port: 2200, hostKey: first?.hostKey };
  const scan = (at: string) => `Give what "${at} | cut -d' ' -f2-" prints`;
  test.each([
    ['on the port of SSH', {}, 'hostKey', scan('ssh-keyscan -t ed25519 10.0.0.1')],
    ['on another', { port: 2222 }, 'hostKey', scan('ssh-keyscan -t ed25519 -p 2222 10.0.0.1')],
    [
      'behind a bastion',
      { port: 2222, bastion },
      'hostKey',
      scan('ssh -p 2200 ops@jump.example.com ssh-keyscan -t ed25519 -p 2222 10.0.0.1'),
    ],
    [
      'as a bastion',
      { hostKey: first?.hostKey, bastion: { ...bastion, hostKey: undefined } },
      'bastion.hostKey',
      scan('ssh-keyscan -t ed25519 -p 2200 jump.example.com'),
    ],
    ['without an address', { address: undefined }, 'hostKey', scan('ssh-keyscan -t ed25519 ADDRESS')],
    [
      'behind a bastion without a user',
      { bastion: { ...bastion, user: undefined } },
      'hostKey',
      scan('ssh -p 2200 USER@jump.example.com ssh-keyscan -t ed25519 10.0.0.1'),
    ],
  ])('%s', (_, more, field, scanned) => {
    const path = `cluster.nodes[0].${field}`;
    const wrong = { ...cluster, nodes: [{ ...first, hostKey: undefined, ...more }] };
    const { message } = failure({ cluster: wrong }, []);
    expect(message).toContain(scanned);
    expect(message).toContain(`try: pulumi config set --path 'kindred:${path}' VALUE`);
  });
});

test('a number of a guarded namespace is set at its path, whose steps may have dots', () => {
  const shop = { name: 'shop', quota: { 'requests.cpu': 'x' }, containers: { max: { memory: 'y' } } };
  const { problems } = failure({ cluster, guardedNamespaces: ['a', shop] }, []);
  expect(problems.map(remedyOf)).toEqual([
    `pulumi config set --path 'kindred:guardedNamespaces[1].quota["requests.cpu"]' VALUE`,
    `pulumi config set --path 'kindred:guardedNamespaces[1].containers.max.memory' VALUE`,
  ]);
});

test('a passphrase that is not used is taken away', () => {
  const rke = { ...cluster, distribution: 'rke', version: 'v1.24.8-rancher1-1' };
  const { problems } = failure({ cluster: rke, sshKeyPassphrase: 'CANARY' }, ['sshKeyPassphrase']);
  expect(problems.map(remedyOf)).toEqual(['pulumi config rm kindred:sshKeyPassphrase']);
});

test('a secret that the options refer to is set, and asked for', () => {
  const registries = [{ host: 'r.example.com', credentialsSecretRef: { namespace: 'a', name: 'b' } }];
  const { problems } = failure({ cluster: { ...cluster, options: { registries } }, clusterSecrets: {} }, [
    'clusterSecrets',
  ]);
  expect(problems.map(remedyOf)).toEqual([
    `pulumi config set --secret --path 'kindred:clusterSecrets["a/b"].username'`,
    `pulumi config set --secret --path 'kindred:clusterSecrets["a/b"].password'`,
  ]);
});
