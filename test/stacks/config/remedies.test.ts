import type * as StructuralSchema from '../../../constructs/kind/schema/structural-schema';
import { configKeys } from '../../../stacks/config/keys';
import { ConfigError, remedyOf } from '../../../stacks/config/parse';
import { SSH_KEY, cluster, config, problems } from './parsed';

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

test('entries of a list are removed from the last to the first, since each removal moves those behind it', () => {
  expect(remedies({ lost: ['10.0.0.8', '10.0.0.1', '10.0.0.9'] })).toEqual([
    ['cluster.lost[2]', "pulumi config rm --path 'kindred:cluster.lost[2]'"],
    ['cluster.lost[0]', "pulumi config rm --path 'kindred:cluster.lost[0]'"],
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

test('a secret that the options refer to is set, from a file', () => {
  const registries = [{ host: 'r.example.com', credentialsSecretRef: { namespace: 'a', name: 'b' } }];
  const { problems } = failure({ cluster: { ...cluster, options: { registries } }, clusterSecrets: {} }, [
    'clusterSecrets',
  ]);
  expect(problems.map(remedyOf)).toEqual([
    `pulumi config set --secret --path 'kindred:clusterSecrets["a/b"].username' < FILE`,
    `pulumi config set --secret --path 'kindred:clusterSecrets["a/b"].password' < FILE`,
  ]);
});

test.each(Object.entries(configKeys))('%s has a command that sets it, and rejects a value of no type', (name, key) => {
  expect(remedyOf({ path: name, message: '' })).toMatch(
    new RegExp(`^pulumi config set (--secret )?(--path ')?kindred:${name}\\b`),
  );
  expect(key.schema.safeParse(null).success).toBe(false);
});

test.each([
  // A path in place of a name, as `pulumi config set` stores it without --path.
  ['cluster.name', "pulumi config rm 'kindred:cluster.name'"],
  ['guardedNamespaces[0]', "pulumi config rm 'kindred:guardedNamespaces[0]'"],
  ['operator-image', "pulumi config rm 'kindred:operator-image'"],
  ["it's", String.raw`pulumi config rm 'kindred:it'\''s'`],
])('the command that removes the unknown key %s removes nothing else', (name, command) => {
  expect(() => config({ context: 'a', [name]: 'x' })).toThrow(`try: ${command}\n`.trimEnd());
});

test('a problem with an unknown key that begins like a known one hides none of that', () => {
  expect(
    problems({ context: 'a', 'cluster.name': 'x', cluster: { ...cluster, version: 'v1' }, sshKey: SSH_KEY }, [
      'sshKey',
    ]),
  ).toEqual([
    expect.stringMatching(/^cluster\.name: there is no such key/),
    expect.stringMatching(/^cluster\.version: /),
  ]);
});

test('a common word of a secret hides no problem of another key', () => {
  const kubeconfig = JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'default' });
  const values = {
    kubeconfig,
    provisionerConfigFiles: { 'a.yml': 'b' },
    guardedNamespaces: [{ name: 'a', containers: 1 }],
  };
  expect(problems(values, ['kubeconfig'])).toEqual([
    'guardedNamespaces[0].containers: it must be an object of defaultRequest, default, max',
    'provisionerConfigSecret: is required: the files of provisionerConfigFiles are in it',
  ]);
});

test('a wrong namespace does not make a right setting of a guarded one wrong', () => {
  const values = { context: 'a', namespace: 'Big', guardedNamespaces: [{ name: 'kindred-system', create: true }] };
  expect(problems(values)).toEqual([expect.stringMatching(/^namespace: /)]);
});

test('a wrong namespace hides no problem of the guarded ones; a resource that the quota does not take is removed', () => {
  const guarded = { name: 'a', quota: { 'requests.storage': '10Gi' } };
  const wrong = { context: 'a', namespace: 'Big', guardedNamespaces: [guarded] };
  expect(problems(wrong)).toEqual([
    expect.stringMatching(/^namespace: /),
    expect.stringMatching(/^guardedNamespaces\[0\]\.quota\["requests\.storage"\]: is no field of it/),
  ]);
  expect(() => config(wrong)).toThrow(
    `try: pulumi config rm --path 'kindred:guardedNamespaces[0].quota["requests.storage"]'`,
  );
});

test.each([
  ['context', 'pulumi config set kindred:context "$(kubectl config current-context)"'],
  ['sshKey', 'pulumi config set --secret kindred:sshKey < ~/.ssh/id_ed25519'],
  ['kinds', "pulumi config set --path 'kindred:kinds[0]' VALUE"],
  ['monitoringLabels', `pulumi config set --path 'kindred:monitoringLabels["KEY"]' VALUE`],
  ['clusterSecrets', `pulumi config set --secret --path 'kindred:clusterSecrets["NAMESPACE/NAME"].KEY' < FILE`],
  ['protectMachines', 'pulumi config set kindred:protectMachines true'],
  ['timeoutSeconds', 'pulumi config set kindred:timeoutSeconds 600'],
])('the command that sets %s', (path, command) => {
  expect(remedyOf({ path, message: '' })).toBe(command);
});
