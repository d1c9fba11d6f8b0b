import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { parse } from 'yaml';
import { HelloApp, kinds } from '../../../constructs/kinds';
import { configKeys } from '../../../stacks/config/keys';
import { ConfigError } from '../../../stacks/config/parse';
import { readConfig } from '../../../stacks/program';
import { configDocuments } from '../../../scripts/config-documents';
import { SSH_KEY, cluster, config, problems } from './parsed';

const root = join(__dirname, '..', '..', '..');

const KUBECONFIG = 'apiVersion: v1\nkind: Config\nclusters: []\n';
describe('the configuration', () => {
  test('a context is enough; the rest has defaults', () => {
    expect(config({ context: 'prod' })).toEqual({
      kubeconfig: undefined,
      context: 'prod',
      cluster: undefined,
      sshKey: undefined,
      sshKeyPassphrase: undefined,
      clusterSecrets: {},
      hostKeyChecking: true,
      namespace: 'kindred-system',
      operatorImage: configKeys.operatorImage.default,
      provisioner: false,
      provisionerImage: configKeys.provisionerImage.default,
      replicas: 2,
      kinds,
      provisionerSecretNamespaces: [],
      provisionerConfigSecret: undefined,
      provisionerConfigFiles: undefined,
      watchNamespaces: [],
      guardedNamespaces: [],
      samples: false,
      samplesNamespace: 'kindred-samples',
      monitoring: false,
      monitoringLabels: {},
      timeoutSeconds: 600,
      protect: false,
      protectMachines: true,
    });
  });

  test('everything set', () => {
    const values = {
      ...{ kubeconfig: KUBECONFIG, context: 'prod', namespace: 'platform', operatorImage: 'r/op@sha256:1' },
      ...{ provisioner: true, provisionerImage: 'r/pro:2', replicas: '3', kinds: ['HelloApp', HelloApp.crdName] },
      ...{ watchNamespaces: ['shop', 'kindred-samples'], samples: true, monitoring: true, protect: 'true' },
      guardedNamespaces: ['shop', { name: 'bank', create: true, quota: { 'requests.cpu': '4' } }],
      monitoringLabels: { release: 'prometheus' },
    };
    expect(config({ ...values, kinds: ['HelloApp'] }, ['kubeconfig'])).toMatchObject({
      ...{ kubeconfig: KUBECONFIG, context: 'prod', namespace: 'platform', replicas: 3, kinds: [HelloApp] },
      ...{ operatorImage: 'r/op@sha256:1', provisionerImage: 'r/pro:2', provisioner: true, protect: true },
      ...{ watchNamespaces: ['shop', 'kindred-samples'], samples: true, monitoring: true },
      guardedNamespaces: values.guardedNamespaces,
      monitoringLabels: { release: 'prometheus' },
    });
  });

  test('a kind may be named as its CRD is', () => {
    expect(config({ context: 'a', kinds: [HelloApp.crdName] }).kinds).toEqual([HelloApp]);
  });

  test('a cluster with its key', () => {
    const read = config({ cluster, sshKey: SSH_KEY, hostKeyChecking: false }, ['sshKey']);
    expect(read).toMatchObject({ cluster, sshKey: SSH_KEY, hostKeyChecking: false });
  });
});

describe('what is wrong', () => {
  test('all of it is said at once, with what to do', () => {
    const error = (() => {
      try {
        config({ replica: 3, replicas: 'two', namespace: 'Big', kinds: ['Hello'], samples: 'yes' });
      } catch (thrown) {
        return thrown as ConfigError;
      }
      throw new Error('nothing was wrong');
    })();
    expect(error.message.split('\n')).toEqual([
      'the configuration of this stack is not valid:',
      expect.stringMatching(/^ {2}kindred:replica: there is no such key; there are kubeconfig, context, .*replicas/),
      "    try: pulumi config rm 'kindred:replica'",
      '  kindred:namespace: "Big" must be at most 63 characters: lower-case letters, digits and "-", starting and ending with a letter or digit',
      '    kindred:namespace is a DNS label',
      '    try: pulumi config set kindred:namespace kindred-system',
      '  kindred:replicas: "two" must be a whole number from 0 to 10',
      '    try: pulumi config set kindred:replicas 2',
      expect.stringMatching(/^ {2}kindred:kinds\[0\]: "Hello" is no kind of the operator; there are HelloApp, /),
      "    try: pulumi config set --path 'kindred:kinds[0]' VALUE",
      '  kindred:samples: "yes" must be true or false',
      '    try: pulumi config set kindred:samples true',
      '  kindred:context: no cluster is named: set kubeconfig or context, or cluster to make one',
      '    kindred:context is the name of a context',
      '    try: pulumi config set kindred:context "$(kubectl config current-context)"',
    ]);
  });

  test.each([
    [{ replicas: 11 }, /^replicas: .*10/],
    [{ replicas: -1 }, /^replicas: /],
    [{ timeoutSeconds: 0 }, /^timeoutSeconds: /],
    [{ replicas: 1.5 }, /^replicas: "1.5" must be a whole number from 0 to 10$/],
    [{ operatorImage: 'two words' }, /^operatorImage: it is no image/],
    [{ operatorImage: '' }, /^operatorImage: it is no image/],
    [{ kinds: 'HelloApp' }, /^kinds: "HelloApp" must be a list of kinds$/],
    [{ kinds: ['Foo', 'Foo'] }, /^kinds: an entry stands in it twice$/],
    [{ kinds: ['Cluster'] }, /^kinds\[0\]: "Cluster" is no kind of the operator/],
    [{ watchNamespaces: ['a_b'] }, /^watchNamespaces\[0\]: "a_b" must be/],
    [{ guardedNamespaces: ['shop', { name: 'shop' }] }, /^guardedNamespaces\[1\]: "shop" is listed twice/],
    [{ guardedNamespaces: [{ create: true }] }, /^guardedNamespaces\[0\]\.name: is required, as a text$/],
    [
      { guardedNamespaces: [{ name: 'a', create: 'yes' }] },
      /^guardedNamespaces\[0\]\.create: it must be true or false$/,
    ],
    [
      { guardedNamespaces: [{ name: 'a', quota: 7 }] },
      /^guardedNamespaces\[0\]\.quota: it must be an object of requests/,
    ],
    [{ guardedNamespaces: [7] }, /^guardedNamespaces\[0\]: it must be a name, or an object with a name$/],
    [
      { guardedNamespaces: [{ name: 'a', qouta: {} }] },
      /^guardedNamespaces\[0\]\.qouta: is no field of it; it has name, create, quota, containers$/,
    ],
    [
      { guardedNamespaces: [{ name: 'kindred-system', create: true }] },
      /^guardedNamespaces\[0\]\.create: .*leave create out/,
    ],
    [
      { guardedNamespaces: [{ name: 'a', quota: { 'limits.cpu': 'many' } }] },
      /^guardedNamespaces\[0\]\.quota\["limits\.cpu"\]: "many" is no quantity/,
    ],
    [{ guardedNamespaces: [{ name: 'a', quota: { 'limits.cpu': -1 } }] }, /^guardedNamespaces.*: "-1" is no quantity/],
    [
      { guardedNamespaces: [{ name: 'a', quota: { 'limits.cpu': true } }] },
      /^guardedNamespaces\[0\]\.quota\["limits\.cpu"\]: it must be a quantity/,
    ],
    [{ samples: true, samplesNamespace: 'kindred-system' }, /^samplesNamespace: it is the operators' namespace/],
    [{ provisionerConfigSecret: 'a_b' }, /^provisionerConfigSecret: /],
    [
      { provisionerConfigFiles: { 'a/b.yml': 'b' } },
      /^provisionerConfigSecret: is required: the files of provisionerConfigFiles are in it$/,
    ],
    [
      { provisionerConfigSecret: 'files', provisionerConfigFiles: { '/etc/b.yml': 'b' } },
      /^provisionerConfigFiles: "\/etc\/b\.yml" must be a path within the directory/,
    ],
    [{ samples: true, watchNamespaces: ['shop'] }, /^watchNamespaces\[1\]: no operator watches "kindred-samples"/],
    [
      { guardedNamespaces: [{ name: 'a', containers: null }] },
      /^guardedNamespaces\[0\]\.containers: it must be an object of /,
    ],
    [
      { provisionerConfigSecret: 'a_b', provisionerConfigFiles: { 'a/b.yml': 'b' } },
      /^provisionerConfigSecret: "a_b" must be/,
    ],
    [{ monitoringLabels: [] }, /^monitoringLabels: "\[\]" must be an object of texts$/],
  ])('%j', (values, problem) => {
    expect(problems({ context: 'a', ...values })).toEqual([expect.stringMatching(problem)]);
  });

  test.each([
    [{}, ['context: no cluster is named: set kubeconfig or context, or cluster to make one']],
    [
      { cluster, sshKey: SSH_KEY, context: 'a' },
      ['context: the platform goes to the cluster that kindred:cluster makes; set only one of them'],
    ],
    [{ cluster }, ['sshKey: is required: the machines of kindred:cluster are reached with it']],
    [{ context: 'a', sshKey: SSH_KEY }, ['sshKey: there is no kindred:cluster that it could be for']],
    [{ kubeconfig: '/home/me/.kube/config' }, ['kubeconfig: it looks like the path of a file: give the text in it']],
  ])('which cluster it is about: %#', (values, expected) => {
    expect(problems(values, ['kubeconfig', 'sshKey'])).toEqual(expected);
  });
});

describe('secrets', () => {
  const canary = 'CANARY-7f3a';

  test('in plain text are refused', () => {
    expect(problems({ kubeconfig: KUBECONFIG })).toEqual([
      'kubeconfig: it stands in plain text in the configuration file of the stack; keep it encrypted',
    ]);
    expect(problems({ cluster, sshKey: SSH_KEY, clusterSecrets: { 'a/b': { c: canary } } })).toEqual([
      expect.stringMatching(/^sshKey: it stands in plain text/),
      expect.stringMatching(/^clusterSecrets: it stands in plain text/),
    ]);
  });

  test.each([
    { kubeconfig: canary },
    { sshKey: canary },
    { clusterSecrets: canary },
    { clusterSecrets: `{"a": "${canary}` },
    { clusterSecrets: { 'a/b': canary } },
    { clusterSecrets: { 'a/b': { c: [canary] } } },
  ])('never stand in an error: %j', (values) => {
    for (const secretKeys of [Object.keys(values), []]) {
      const found = problems({ ...values, ...(secretKeys.length === 0 ? { context: 'a' } : {}) }, secretKeys);
      expect(found.length).toBeGreaterThan(0);
      expect(found.join()).not.toContain(canary);
    }
  });

  test('are not quoted in a problem of another key, however short they are', () => {
    const label = 'canary-7f3a';
    const watched = { context: 'a', samples: true, samplesNamespace: label, watchNamespaces: ['shop'] };
    expect(problems(watched, ['samplesNamespace'])).toEqual([
      'watchNamespaces[1]: is not valid; more is not said, since it is kept encrypted',
    ]);
    expect(problems(watched)).toEqual([expect.stringContaining(label)]);
    const sshKeySecretRef = { namespace: 'infra', name: 'jump' };
    const bastion = { address: 'jmp', user: 'ops', sshKeySecretRef };
    const nodes = [{ ...cluster.nodes[0], address: 'db1', hostKey: undefined, bastion }];
    for (const hostKeyChecking of [true, false]) {
      const values = { cluster: { ...cluster, nodes }, hostKeyChecking, sshKey: SSH_KEY };
      const found = problems(values, ['cluster', 'sshKey']);
      expect(found).not.toEqual([]);
      expect(found.join()).not.toMatch(/db1|jmp|ops/);
      expect(problems(values, ['sshKey']).join()).toMatch(/db1/);
    }
  });

  test('that were set under the key of something else do not stand in an error either', () => {
    expect(problems({ cluster: canary }, ['cluster'])).toEqual([
      expect.stringMatching(/^cluster: it must be an object \{name, .*; more is not said, since it is kept encrypted$/),
    ]);
    expect(problems({ context: 'a', namespace: canary }, ['namespace'])).toEqual([
      'namespace: it must be a DNS label; more is not said, since it is kept encrypted',
    ]);
    expect(problems({ cluster: { ...cluster, lost: [canary] }, sshKey: SSH_KEY }, ['cluster', 'sshKey'])).toEqual([
      'cluster.lost[0]: is not valid; more is not said, since it is kept encrypted',
    ]);
  });
});

describe('Pulumi.yaml', () => {
  const { config: declared } = parse(readFileSync(join(root, 'Pulumi.yaml'), 'utf8')) as {
    readonly config: Readonly<Record<string, { readonly default: unknown }>>;
  };

  test.each(configDocuments)('and what else is generated from the keys is up to date: $path', ({ path, render }) => {
    const text = readFileSync(join(root, path), 'utf8');
    expect(render(text)).toBe(text);
    expect(text).toContain('kindred:timeoutSeconds');
  });

  test('declares every key and no type: Pulumi would refuse the first wrong value itself, without a remedy', () => {
    expect(Object.keys(declared)).toEqual(Object.keys(configKeys).map((name) => `kindred:${name}`));
    for (const key of Object.values(declared)) expect(Object.keys(key)).toEqual(['description', 'default']);
  });

  test('its defaults and a context are a valid configuration', () => {
    const defaults = Object.entries(declared).map(([key, { default: value }]) => [key.slice(8), value]);
    expect(config({ ...(Object.fromEntries(defaults) as object), context: 'a' })).toEqual(config({ context: 'a' }));
  });
});

test("the stacks' own files, which hold the configuration and the salt of its secrets, are not ignored", () => {
  const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n');
  expect(ignored).toContain('node_modules/');
  expect(ignored.filter((line) => /pulumi/i.test(line))).toEqual([]);
});

describe('reading what Pulumi hands over', () => {
  test('takes the keys of its namespace, whatever the project is called', () => {
    pulumi.runtime.setAllConfig({ 'kindred:context': 'a', 'kindred:replicas': '3', 'aws:region': 'x' });
    expect(readConfig()).toMatchObject({ context: 'a', replicas: 3 });
  });

  test('knows which keys are encrypted', () => {
    pulumi.runtime.setAllConfig({ 'kindred:kubeconfig': KUBECONFIG }, ['kindred:kubeconfig']);
    expect(readConfig().kubeconfig).toBe(KUBECONFIG);
  });

  test('and checks them', () => {
    pulumi.runtime.setAllConfig({ 'kindred:replica': '3' });
    expect(() => readConfig()).toThrow(ConfigError);
  });
});
