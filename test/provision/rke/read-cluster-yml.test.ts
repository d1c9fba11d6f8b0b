import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { parse } from 'yaml';
import { readClusterYml } from '../../../provision/rke/read-cluster-yml';
import { cpuTimeMs } from '../../support/processes';

const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----\n';

const minimal = (fields: object = {}, nodeFields: object = {}): Record<string, unknown> => ({
  kubernetes_version: 'v1.30.5-rancher1-1',
  nodes: [{ address: '10.0.0.1', user: 'rke', role: ['controlplane', 'etcd'], ssh_key_path: 'id_rsa', ...nodeFields }],
  ...fields,
});

const problemsOf = (value: unknown, options = {}): string[] =>
  readClusterYml(value, options).problems.map(({ path, message }) => `${path}: ${message}`);

describe("a user's cluster.yml", () => {
  test('one node with every role, as a non-root user', () => {
    const file = readClusterYml(parse(readFileSync(join(__dirname, 'cluster-aws.yml'), 'utf8')), {
      folder: 'config/rkespec',
    });
    expect(file.problems).toEqual([]);
    expect(file.files).toEqual([{ path: 'config/rkespec/id_rsa', purpose: 'sshKey', field: 'nodes[0].ssh_key_path' }]);
    expect(file.nodes).toEqual([
      { address: '10.18.74.175', port: 22, user: 'tht', roles: ['controlplane', 'worker', 'etcd'] },
    ]);
    expect(file.warnings).toHaveLength(1);
  });

  test('every field that RKE itself writes is known', () => {
    const written = parse(readFileSync(join(__dirname, 'rke-config-empty.yml'), 'utf8')) as Record<string, unknown>;
    const filled = { ...written, nodes: minimal()['nodes'] };
    expect(problemsOf(filled)).toEqual([]);
  });

  test('unknown fields are refused, all at once', () => {
    const config = minimal({ nonsense: 1, services: { kubelet: { extra: 1 } } }, { password: 'x' });
    expect(problemsOf(config)).toEqual([
      expect.stringMatching(/^nodes\[0\]\.password: is no field/),
      expect.stringMatching(/^nonsense: is no field/),
      expect.stringMatching(/^services\.kubelet\.extra: is no field/),
    ]);
  });

  test.each([
    ['../id_rsa', 'leaves the configured directory'],
    ['a/../../id_rsa', 'leaves the configured directory'],
    ['/etc/shadow', 'leaves the configured directory'],
    ['/srv/kindred-other/id', 'leaves the configured directory'],
    ['~/.ssh/id_rsa', 'home directory'],
    ['.ssh/id_rsa', 'hidden'],
    ['a\nb', 'must be made of'],
    ['-oProxyCommand', 'must be made of'],
    ['k', 'crashes'],
    ['.', 'names no file'],
  ])('the path %j is refused', (path, why) => {
    expect(problemsOf(minimal({}, { ssh_key_path: path }), { directory: '/srv/kindred' })).toEqual([
      expect.stringContaining(why),
      expect.stringContaining('has no SSH key'),
    ]);
  });

  test.each([
    ['/srv/kindred/keys/id_rsa', 'keys/id_rsa'],
    ['../keys/id_rsa', 'keys/id_rsa'],
    ['./id_rsa', 'clusters/id_rsa'],
  ])('the path %s becomes %s', (path, resolved) => {
    const file = readClusterYml(minimal({}, { ssh_key_path: path }), { directory: '/srv/kindred', folder: 'clusters' });
    expect(file.problems).toEqual([]);
    expect(file.files.map((found) => found.path)).toEqual([resolved]);
  });

  test('what would make RKE read or fetch elsewhere is refused', () => {
    const config = minimal({
      addons_include: ['https://example.com/x.yml', 'httpd.yml', '/etc/passwd', 'addons/ok.yml'],
      bastion_host: { address: 'b', user: 'u', ssh_key_path: '/root/.ssh/id_rsa' },
      ssh_agent_auth: true,
      restore: { restore: true },
      rotate_certificates: { caCertificates: true },
    });
    const paths = readClusterYml(config, { directory: '/srv' }).problems.map(({ path }) => path);
    expect(paths).toEqual([
      'addons_include[0]',
      'addons_include[1]',
      'addons_include[2]',
      'bastion_host.ssh_key_path',
      'ssh_agent_auth',
      'restore.restore',
      'rotate_certificates',
      'bastion_host',
    ]);
  });

  test('a name that no node can bear is refused', () => {
    const problemsOf = (name: string) =>
      readClusterYml(minimal({}, { hostname_override: name }), { sshKey: true }).problems;
    expect(problemsOf('n'.repeat(63))).toEqual([]);
    expect(problemsOf(`${'n'.repeat(32)}.${'m'.repeat(31)}`)).toEqual([
      { path: 'nodes[0].hostname_override', message: expect.stringContaining('at most 63 characters') as string },
    ]);
  });

  test('a private key in the file is taken out and named, and its value is in no text', () => {
    const config = minimal({ bastion_host: { address: 'b', user: 'u', ssh_key: KEY } }, { ssh_key: KEY });
    const refused = readClusterYml(config);
    expect(refused.problems.map(({ path }) => path)).toEqual(['nodes[0].ssh_key', 'bastion_host.ssh_key']);
    const { secretTexts, ...shown } = readClusterYml(config, { sshKey: true });
    expect(shown.problems).toEqual([]);
    expect(shown.files).toEqual([]);
    expect(shown.secrets).toEqual([
      { field: 'nodes[0].ssh_key', kind: 'sshKey' },
      { field: 'bastion_host.ssh_key', kind: 'sshKey' },
    ]);
    expect(secretTexts).toEqual([]);
    expect(JSON.stringify([shown, refused])).not.toContain('CANARY');
  });

  test('other secrets stay in the configuration, and are shown nowhere else', () => {
    const file = readClusterYml(
      minimal({
        private_registries: [{ url: 'r.example.com', user: 'u', password: 'CANARY-1' }],
        services: { etcd: { backup_config: { s3backupconfig: { secret_key: 'CANARY-2' } }, key: KEY } },
        cloud_provider: { name: 'azure', azureCloudProvider: { aadClientSecret: 'CANARY-3' } },
        network: { options: { weave_password: 'CANARY-4' } },
        addons: 'kind: Secret # CANARY-5',
        authorization: { mode: 'rbac', options: { x: KEY } },
      }),
    );
    const { config, secretTexts, ...shown } = file;
    expect(file.problems).toEqual([]);
    expect(JSON.stringify(shown)).not.toContain('CANARY');
    expect(JSON.stringify(config)).toContain('CANARY-3');
    expect(secretTexts).toEqual(['CANARY-1', 'CANARY-2', KEY, 'CANARY-3', 'CANARY-4', 'kind: Secret # CANARY-5']);
    expect(shown.redactedClusterYml).toContain('"url": "r.example.com"');
  });

  test('values with a wrong type, a missing field, a wrong combination', () => {
    const config = {
      kubernetes_version: 'v1.32.5-rancher1-1',
      nodes: [
        { address: 'a', user: 'rke', role: ['worker'], port: 22 },
        { address: 'a', role: 'etcd' },
        { address: '$(x)', user: 'rke', role: [] },
      ],
      services: { kubelet: { extra_args: { a: 1.5 }, fail_swap_on: 'false' } },
      upgrade_strategy: { drain: true },
    };
    expect(readClusterYml(config, { sshKey: true }).problems.map(({ path }) => path)).toEqual([
      'nodes[1].role',
      'services.kubelet.extra_args.a',
      'services.kubelet.fail_swap_on',
      'nodes[1].user',
      'nodes[1].role',
      'nodes[2].address',
      'nodes[2].role',
      'kubernetes_version',
      'nodes',
      'nodes',
      'upgrade_strategy.node_drain_input',
    ]);
  });

  test('aliases of aliases are bounded', () => {
    let bomb: unknown = 'x';
    for (let i = 0; i < 30; i += 1) bomb = [bomb, bomb, bomb];
    const loop: Record<string, unknown> = {};
    loop['loop'] = loop;
    const started = cpuTimeMs();
    expect(problemsOf(minimal({ network: { tolerations: bomb } }))).toEqual([expect.stringContaining('aliases')]);
    expect(problemsOf(minimal({ network: { tolerations: loop } }))).toEqual([expect.stringContaining('deep')]);
    expect(cpuTimeMs() - started).toBeLessThan(5000);
  });
});

/** Field names that matter, so that junk reaches the depths. */
const names = fc.constantFrom(
  ...[
    'nodes',
    'address',
    'user',
    'role',
    'ssh_key_path',
    'ssh_key',
    'services',
    'kubelet',
    'extra_args',
    'addons_include',
  ],
  ...[
    'bastion_host',
    'ssh_cert_path',
    'network',
    'tolerations',
    '__proto__',
    'constructor',
    'cloud_provider',
    'toString',
  ],
);
const leaf = fc.oneof(
  fc.string(),
  fc.double(),
  fc.boolean(),
  fc.constantFrom(null, undefined, '../x', '/etc/passwd', 'a/b', 'x/../../y', KEY, '10.0.0.1', 'rke', new Date(0), 10n),
);
const { junk } = fc.letrec((tie) => ({
  junk: fc.oneof(
    { maxDepth: 6 },
    leaf,
    fc.array(tie('junk'), { maxLength: 4 }),
    fc.dictionary(names, tie('junk'), { maxKeys: 6 }),
  ),
}));
const plausible = fc.dictionary(names, junk, { maxKeys: 4 }).map((fields) => minimal(fields as object));
const options = fc.record(
  { directory: fc.constantFrom('/srv/kindred', '/'), folder: fc.constantFrom('', 'a/b') },
  { requiredKeys: [] },
);

describe('whatever comes', () => {
  test('junk never throws, and is never taken', () => {
    fc.assert(
      fc.property(junk, options, (value, given) => {
        const file = readClusterYml(value, given);
        expect(file.problems).not.toEqual([]);
        expect(JSON.stringify({ ...file, config: undefined, secretTexts: undefined })).not.toContain('CANARY');
      }),
    );
  });

  test('what is taken comes out the same when read again, and names nothing outside', () => {
    let taken = 0;
    fc.assert(
      fc.property(plausible, options, fc.boolean(), (value, given, sshKey) => {
        const file = readClusterYml(value, { ...given, sshKey });
        for (const { path } of file.files) {
          expect(path).not.toMatch(/^[/~]|(^|\/)[.]/);
        }
        if (file.problems.length > 0) return;
        taken += 1;
        const again = readClusterYml(file.config, { sshKey });
        expect(again.problems).toEqual([]);
        expect(again.config).toEqual(file.config);
      }),
      { numRuns: 500 },
    );
    expect(taken).toBeGreaterThan(10);
  });
});
