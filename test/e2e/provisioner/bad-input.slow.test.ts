import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { owned } from '../../../constructs/kube/resource-type';
import {
  Cluster,
  Kubeconfig,
  MACHINES_NAMESPACE,
  ProvisionerTestEnv,
  FakeRke,
  STATE_NAMESPACE,
} from '../../support/provisioner-env';
import { findCondition } from '../../support/assertions';

/** Stands in every file and Secret that is refused, and must show nowhere. */
const CANARY = 'CANARYa8f3';

const yml = (more = '', node = ''): string => `nodes:
  - address: 192.0.2.1
    user: rke
    role: [controlplane, etcd, worker]
${node}${more}`;

describe('what is refused', () => {
  const world = new ProvisionerTestEnv();
  const rke = new FakeRke(world);
  const key = { namespace: MACHINES_NAMESPACE, name: 'ssh', key: 'k' };
  let count = 0;

  beforeAll(async () => {
    rke.install();
    await world.start();
  }, 60_000);

  const file = (name: string, text: string): string => {
    mkdirSync(join(world.configDir, 'a'), { recursive: true });
    writeFileSync(join(world.configDir, 'a', name), text);
    return `a/${name}`;
  };

  /** Makes an object, and waits for the reason in its Ready. */
  async function refusal(
    kind: typeof Cluster | typeof Kubeconfig,
    spec: object,
  ): Promise<{ reason: string; message: string }> {
    const name = `bad-${String((count += 1))}`;
    await world.env.create(kind.type, { name }, { spec });
    const object = await world.waitUntil(kind, name, 'refused', (one) => {
      const { reason, status } = findCondition(one, 'Ready') ?? {};
      return status === 'False' && reason !== 'Provisioning';
    });
    expect(JSON.stringify(object)).not.toContain(CANARY);
    const { reason, message } = findCondition(object, 'Ready') ?? { reason: '', message: '' };
    return { reason, message };
  }

  describe('in files', () => {
    test('outside of the directory, by an absolute path or through a link, whether it exists or not', async () => {
      const outside = join(world.folder, 'outside.yml');
      writeFileSync(outside, yml(`cluster_name: ${CANARY}\n`));
      symlinkSync(outside, join(world.configDir, 'link.yml'));
      symlinkSync(world.folder, join(world.configDir, 'folder'));
      const leaves = {
        reason: 'ErrFile',
        message: expect.stringContaining('leads out of the configured directory') as string,
      };
      for (const configPath of [outside, `${outside}-missing`, 'link.yml', 'folder/outside.yml']) {
        expect(await refusal(Cluster, { configPath })).toEqual(leaves);
        expect(await refusal(Kubeconfig, { configPath })).toEqual(leaves);
      }
    });

    test('that are missing, directories, or larger than a Secret', async () => {
      expect((await refusal(Cluster, { configPath: 'none.yml' })).message).toContain('it cannot be found');
      expect((await refusal(Cluster, { configPath: 'a' })).message).toMatch(/no regular file|cannot be found/);
      const large = file('large.yml', '#'.repeat(1_048_577));
      expect((await refusal(Cluster, { configPath: large })).message).toContain('at most 1048576 are read');
    });

    test.each([
      ['no YAML', `{ ${CANARY}: [`, 'it is no YAML'],
      ['no cluster.yml', `- ${CANARY}\n`, 'cannot be used'],
      ['an unknown field', yml(`unheard_of: ${CANARY}\n`), 'unheard_of'],
      ['a file of the host', yml(`ssh_key_path: /etc/${CANARY}\n`), 'ssh_key_path: leaves the configured directory'],
      [
        'a file by ..',
        yml('', '    ssh_key_path: ../../id\n'),
        'nodes[0].ssh_key_path: leaves the configured directory',
      ],
      ['a home directory', yml('ssh_key_path: ~/.ssh/id_rsa\n'), 'starts in a home directory'],
      ['add-ons of the host', yml('addons_include: [/etc/passwd]\n'), 'addons_include[0]: leaves'],
      ['a private key', yml('', `    ssh_key: "-----BEGIN PRIVATE KEY-----${CANARY}"\n`), 'holds a private key'],
    ])('that hold %s', async (_, text, message) => {
      const configPath = file(`c${String(count)}.yml`, text);
      const { reason, message: said } = await refusal(Cluster, { configPath });
      expect(reason).toBe('ErrInvalidConfig');
      expect(said).toContain(message);
    });
  });

  test.each([
    ['exec', { user: { exec: { command: CANARY } } }, 'exec is not allowed'],
    ['auth-provider', { user: { 'auth-provider': { name: CANARY } } }, 'auth-provider is not allowed'],
    ['tokenFile', { user: { tokenFile: `/etc/${CANARY}` } }, 'tokenFile is not allowed'],
    ['proxy-url', { cluster: { 'proxy-url': `http://${CANARY}` } }, 'proxy-url is not allowed'],
    ['insecure TLS', { cluster: { 'insecure-skip-tls-verify': true } }, 'insecure-skip-tls-verify is not allowed'],
    ['plain HTTP', { cluster: { server: `http://${CANARY}` } }, 'server: must be an address that begins with https://'],
    ['a password in its address', { cluster: { server: `https://a:${CANARY}@b` } }, 'without user'],
  ])('a kubeconfig with %s', async (_, change: { cluster?: object; user?: object }, message) => {
    const config = load(readFileSync(world.env.plane.adminKubeconfig, 'utf8')) as {
      clusters: { cluster: object }[];
      users: { user: object }[];
    };
    Object.assign(config.clusters[0]!.cluster, change.cluster);
    Object.assign(config.users[0]!.user, change.user);
    const name = `kubeconfig-${String(count)}`;
    await world.secret(name, { k: JSON.stringify(config) });
    const { reason, message: said } = await refusal(Kubeconfig, {
      secretRef: { namespace: MACHINES_NAMESPACE, name, key: 'k' },
    });
    expect(reason).toBe('ErrKubeconfig');
    expect(said).toContain(message);
  });

  describe('of Secrets', () => {
    test('one that is missing, or has no such key, until it is there; and one that is deleted later', async () => {
      const secretRef = { namespace: MACHINES_NAMESPACE, name: 'late', key: 'k' };
      const config = readFileSync(world.env.plane.adminKubeconfig, 'utf8');
      await world.env.create(Kubeconfig.type, { name: 'late' }, { spec: { secretRef } });
      const reason = (wanted: string, words: string) =>
        world.waitUntil(Kubeconfig, 'late', wanted, (object) => {
          const ready = findCondition(object, 'Ready');
          return ready?.reason === wanted && ready.message.includes(words);
        });
      await reason('ErrNotFound', 'Secret machines/late does not exist');
      await world.secret('late', { other: 'x' });
      await world.annotate(Kubeconfig, 'late', { 'kindred.dev/reconcile-at': '1' });
      await reason('ErrNotFound', 'has no key "k"');
      await world.secret('late', { k: config });
      await world.annotate(Kubeconfig, 'late', { 'kindred.dev/reconcile-at': '2' });
      await world.waitUntilReady(Kubeconfig, 'late');
      await world.env.deleteAndWait(owned.Secret, { namespace: MACHINES_NAMESPACE, name: 'late' });
      await world.annotate(Kubeconfig, 'late', { 'kindred.dev/reconcile-at': '3' });
      await reason('ErrNotFound', 'does not exist');
    });

    test('one of a namespace that is not configured', async () => {
      const configSecretRef = { namespace: 'kube-system', name: 'x', key: 'k' };
      const { reason, message } = await refusal(Cluster, { configSecretRef });
      expect(reason).toBe('ErrNamespaceNotAllowed');
      expect(message).toContain('the namespaces to read from are kindred-system, machines');
    });

    test('the state or the kubeconfig of another Cluster, wherever it is named', async () => {
      await world.secret('ssh', { k: CANARY });
      const mark = {
        labels: { 'app.kubernetes.io/managed-by': 'kindred' },
        annotations: { 'kindred.dev/owner-uid': '5b3b9a4e-0000-4000-8000-000000000001' },
      };
      for (const [name, data] of [
        ['edge-state', 'effects.json'],
        ['edge-kubeconfig', 'kubeconfig'],
      ] as const) {
        await world.secret(name, { [data]: CANARY }, STATE_NAMESPACE);
        await world.env.patch(owned.Secret, { namespace: STATE_NAMESPACE, name }, { metadata: mark });
        const ref = { namespace: STATE_NAMESPACE, name, key: data };
        const nodes = [{ address: '192.0.2.1', user: 'root', roles: ['controlplane', 'etcd'] }];
        const k3s = { distribution: 'k3s', version: 'v1.34.1+k3s1', nodes };
        const registries = [{ host: 'r.example.com', caSecretRef: ref }];
        for (const spec of [
          { configSecretRef: ref },
          { ...k3s, sshKeySecretRef: ref },
          { ...k3s, sshKeySecretRef: key, k3s: { registries } },
        ]) {
          const { reason, message } = await refusal(Cluster, spec);
          expect(reason).toBe('ErrSecretNotAllowed');
          expect(message).toContain(`Secret kindred-system/${name} is not read: it is the ${name.slice(5)} of`);
        }
      }
      const secretRef = { namespace: STATE_NAMESPACE, name: 'edge-state', key: 'effects.json' };
      expect((await refusal(Kubeconfig, { secretRef })).reason).toBe('ErrSecretNotAllowed');
    });

    test('a key with a passphrase, and what is no key', async () => {
      const path = join(world.folder, 'id');
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', CANARY, '-C', 'test', '-f', path]);
      const spec = {
        distribution: 'k3s',
        version: 'v1.34.1+k3s1',
        sshKeySecretRef: key,
        nodes: [{ address: '192.0.2.1', user: 'root', roles: ['controlplane', 'etcd'] }],
      };
      await world.secret('ssh', { k: readFileSync(path, 'utf8') });
      expect((await refusal(Cluster, spec)).message).toContain('it asks for a passphrase');
      await world.secret('ssh', { k: CANARY });
      expect((await refusal(Cluster, spec)).message).toContain('it is not a private key');
    });

    test('a state of somebody else: nothing is begun', async () => {
      const inits = rke.count('init');
      await world.secret('taken-state', { k: CANARY }, STATE_NAMESPACE);
      await world.env.create(Cluster.type, { name: 'taken' }, { spec: { configPath: file('taken.yml', yml()) } });
      const object = await world.waitUntilStalled(Cluster, 'taken');
      expect(findCondition(object, 'Ready')).toMatchObject({
        reason: 'ErrResourceExists',
        message: expect.stringContaining('Secret kindred-system/taken-state is not ours') as string,
      });
      expect(rke.count('init')).toBe(inits);
      expect(await world.values('taken-state')).toEqual({ k: CANARY });
    });
  });

  describe('by the API server', () => {
    const spec = {
      distribution: 'rke',
      version: 'v1.30.5-rancher1-1',
      sshKeySecretRef: key,
      nodes: [{ address: '192.0.2.1', user: 'rke', roles: ['controlplane', 'etcd', 'worker'] }],
    };
    const [node] = spec.nodes;

    test.each([
      ['configPath', { configPath: '../cluster.yml' }],
      ['configPath', { configPath: 'a/../../cluster.yml' }],
      ['configPath', { configPath: 'a;reboot' }],
      ['address', { ...spec, nodes: [{ ...node, address: '192.0.2.1 -oProxyCommand=x' }] }],
      ['user', { ...spec, nodes: [{ ...node, user: '$(reboot)' }] }],
      ['hostnameOverride', { ...spec, nodes: [{ ...node, hostnameOverride: 'a`reboot`' }] }],
      ['version', { ...spec, version: "v1.30.5-rancher1-1'" }],
      ['sources', { ...spec, configPath: 'cluster.yml' }],
    ])('%s: %j', async (_, bad) => {
      const made = world.env.create(Cluster.type, { name: 'shell' }, { spec: bad });
      await expect(made).rejects.toThrow(/is invalid/);
    });
  });

  test('nothing was run, nothing leaked', async () => {
    expect(rke.standIn.calls()).toEqual([]);
    expect(JSON.stringify(world.env.operator.log.all)).not.toContain(CANARY);
    const events = await world.env.kubectl(['get', 'events', '-A', '-o', 'json']);
    expect(events.stdout).not.toContain(CANARY);
    expect((await world.env.auditLog()).refusals()).toEqual([]);
  });
});
