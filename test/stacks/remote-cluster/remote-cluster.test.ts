import * as pulumi from '@pulumi/pulumi';
import { InvalidObjectError } from '../../../constructs';
import { RemoteCluster, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { agent, answers, cluster, hostKey, server } from './clusters';
import { named, record, unknown, type Registered } from './recorder';
import { COMMAND, changed, run } from './recorded-cluster';

// More changes and Outputs are in remote-cluster.slow.test.ts.

/** The problems that a cluster is refused for, before anything is registered. */
async function refusal(args: RemoteClusterArgs): Promise<readonly string[]> {
  let problems: readonly string[] = [];
  const found = await record(() => {
    try {
      new RemoteCluster('prod', args);
    } catch (error) {
      if (!(error instanceof InvalidObjectError)) throw error;
      problems = error.problems.map(({ path, message }) => `${path}: ${message}`);
    }
  });
  expect(found).toEqual([]);
  expect(problems).not.toEqual([]);
  return problems;
}

describe('the resources', () => {
  test('are named by the machine and what is done there', async () => {
    const found = await run(cluster({ nodes: [server(1), agent(2)] }));
    const names = found.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['prod', 'prod/10.0.0.1/install', 'prod/10.0.0.2/install', 'prod/provider']),
    );
    expect(names).toContain('prod/10.0.0.2/install/removal');
    expect(new Set(names).size).toBe(names.length);
    expect(named(found, 'prod').type).toBe('kindred:cluster:RemoteCluster');
  });

  test('the provider comes after all of them, and is never replaced for a new kubeconfig', async () => {
    const found = await run(cluster({ nodes: [server(1), agent(2)] }));
    const provider = named(found, 'prod/provider');
    const commands = found.filter(({ type }) => COMMAND.test(type)).map(({ urn }) => urn);
    expect(provider.dependencies).toEqual(expect.arrayContaining(commands));
    expect(provider.inputs).toMatchObject({
      // Not the project's or the stack's name: a renamed one would replace everything.
      clusterIdentifier: 'prod',
      kubeconfig: { secret: 'KUBECONFIG-CANARY' },
    });
  });

  test('no provider is made unless it is asked for', async () => {
    const found = await record(() => new RemoteCluster('prod', cluster()), { answers });
    expect(found.map(({ type }) => type)).not.toContain('pulumi:providers:kubernetes');
  });

  test('all that takes something away is protected, unless told otherwise', async () => {
    const nodes = [server(1), agent(2), agent(3)];
    const guardedOf = (found: readonly Registered[]) => found.filter((each) => each.protect).map(({ name }) => name);
    const guarded = async (more: Partial<RemoteClusterArgs>) =>
      guardedOf(await run({ ...cluster({ nodes }), ...more } as RemoteClusterArgs));
    const found = await run(cluster({ nodes }));
    const all = found.map(({ name }) => name).filter((name) => name.endsWith('/removal'));
    expect(all.length).toBeGreaterThanOrEqual(3);
    expect(guardedOf(found)).toEqual(all);
    expect(await guarded({ protect: false })).toEqual([]);
    expect(await guarded({ removable: ['10.0.0.3'] })).toEqual(all.filter((name) => !name.includes('10.0.0.3')));
  });
});

describe('a change touches only what it must', () => {
  const args = (more: { lost?: string[] } = {}) =>
    cluster({ nodes: [server(1), server(2), server(3), agent(4)], ...more });
  let first: Promise<readonly Registered[]> | undefined;
  const before = () => (first ??= run(args()));

  test('nothing changed', async () => {
    expect(changed(await before(), await run(args()))).toEqual({ added: [], gone: [], changed: [] });
  });

  test('a machine is gone for ever: nothing is run on it, and its removal takes nothing away', async () => {
    const after = await run(args({ lost: ['10.0.0.4'] }));
    const diff = changed(await before(), after);
    expect(diff.added).toEqual([]);
    expect(diff.gone).toContain('prod/10.0.0.4/install');
    const kept = after.filter(({ name, type }) => COMMAND.test(type) && /^prod\/10\.0\.0\.4\/[a-z]+$/.test(name));
    // What it said of itself is still compared with the others; the Command is left as it is.
    expect(kept.map(({ name }) => name)).toEqual(['prod/10.0.0.4/preflight']);
    expect(kept[0]?.ignoreChanges).toEqual(expect.arrayContaining(['connection', 'create', 'update', 'stdin']));
    expect(named(after, 'prod/10.0.0.4/install/removal')).toMatchObject({ protect: false });
    expect(named(after, 'prod/10.0.0.4/install/removal').inputs).not.toHaveProperty('delete');
    // A server still takes it out of the cluster.
    expect(named(after, 'prod/10.0.0.4/ready/removal').inputs).toHaveProperty('delete');
    const deletes = after
      .filter(({ inputs }) => 'delete' in inputs)
      .map(({ inputs }) => JSON.stringify(inputs['connection']));
    expect(deletes.filter((connection) => connection.includes('10.0.0.4'))).toEqual([]);
  });
});

describe('Outputs', () => {
  const deferred = (value: string) => pulumi.output(value);

  test('that a preview does not know leave the rest of it as it is', async () => {
    const late = (address: pulumi.Input<string>) =>
      cluster({ nodes: [server(1), agent(4, { name: 'late', address })] });
    // A machine of the same program, which has no address before it is made.
    class Machine extends pulumi.CustomResource {
      declare readonly address: pulumi.Output<string>;
      constructor() {
        super('test:index:Machine', 'machine', { address: undefined });
      }
    }
    const found = await record(() => new RemoteCluster('prod', late(new Machine().address)).provider, {
      preview: true,
    });
    const plain = await run(late('10.0.0.4'), { preview: true });
    expect(found.map(({ name }) => name).filter((name) => name !== 'machine')).toEqual(plain.map(({ name }) => name));
    expect(named(found, 'prod/10.0.0.1/install').inputs['create']).not.toBe(unknown);
    expect(named(found, 'prod/late/install').inputs['create']).toBe(unknown);
  });

  test('of an address need a name', async () => {
    const problems = await refusal(cluster({ nodes: [server(1), agent(4, { address: deferred('10.0.0.4') })] }));
    expect(problems).toEqual([
      expect.stringMatching(/^nodes\[1\]\.name: is required, because the address is an Output/),
    ]);
  });

  test('stand only where nothing depends on them', async () => {
    const nodes = [{ ...server(1), roles: deferred('worker') as unknown as ['worker'] }];
    expect(await refusal(cluster({ nodes }))).toEqual(
      expect.arrayContaining([expect.stringMatching(/^nodes\[0\]\.roles: cannot be an Output/)]),
    );
  });
});

describe('the preflight', () => {
  test('says everything at once', async () => {
    const nodes = [server(1, { hostKey: undefined }), server(2), server(2), server(3, { name: 'Not A Label' })];
    const problems = await refusal(cluster({ nodes, lost: ['10.9.9.9'], dialAttempts: 0 }));
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^nodes\[0\]\.hostKey: is required: .* pose as "10\.0\.0\.1"\./),
        expect.stringMatching(/^nodes: no two entries may have the same address/),
        expect.stringMatching(/^nodes\[3\]\.name: "Not A Label" must be/),
        expect.stringMatching(/^lost\[0\]: "10\.9\.9\.9" is none of the nodes/),
        expect.stringMatching(/^dialAttempts: it must be a whole number of at least 1/),
      ]),
    );
  });

  test.each([
    [
      'an even number of etcd members',
      cluster({ nodes: [server(1), server(2)] }),
      /^nodes: 2 nodes have the role etcd/,
    ],
    ['no server', cluster({ nodes: [agent(1)] }), /at least one node must have the role controlplane/],
    ['a version of another distribution', cluster({ version: 'v1.30.4+rke2r1' }), /a version of k3s has "\+k3s" in it/],
    ['an unknown option', cluster({ options: { colour: 'red' } as object }), /^options\.colour: is no field/],
    ['a name that is none', cluster({ clusterName: 'Prod!' }), /^clusterName: /],
    [
      'a missing secret',
      cluster({
        options: { registries: [{ host: 'r.example.com', credentialsSecretRef: { namespace: 'a', name: 'b' } }] },
        secrets: { 'a/b': { username: 'u' } },
      }),
      /^secrets\["a\/b"\]\.password: is missing/,
    ],
  ])('refuses %s', async (_, args, message) => {
    expect(await refusal(args)).toEqual(expect.arrayContaining([expect.stringMatching(message)]));
  });

  test.each([
    ['no nodes', { nodes: undefined }, ['nodes: is required']],
    ['no key', { sshKey: undefined }, [/^sshKey: is missing, and "10\.0\.0\.1" is reached with it$/]],
    ['an empty key', { sshKey: '' }, [/^sshKey: is missing, and /]],
    ['an installer that is an Output', { installer: pulumi.output({}) }, [/^installer: cannot be an Output/]],
    ['options that are an Output', { options: pulumi.output({}) }, [/^options: cannot be an Output/]],
    ['a node that is an Output', { nodes: [pulumi.output({})] }, [/^nodes\[0\]: cannot be an Output/]],
    [
      'secrets that are an Output',
      { secrets: pulumi.output({}) },
      ['secrets: it must be an object of objects of texts'],
    ],
    ['a protection that is an Output', { protect: pulumi.output(true) }, [/^protect: cannot be an Output/]],
    ['a misspelled key', { sshkey: pulumi.secret('CANARY') }, [/^sshkey: is no field of it; it has /]],
    [
      'a bastion that is a text',
      { nodes: [{ ...server(1), bastion: 'jump' }] },
      ['nodes[0].bastion: it must be an object with address and user'],
    ],
    [
      'http without a checksum',
      { installer: { url: 'http://mirror/k3s.sh' } },
      [/^installer\.url: is fetched by http/],
    ],
    ['nodes that are an Output', { nodes: pulumi.output([]) }, [/^nodes: cannot be an Output/]],
    [
      'a misspelled argument',
      { hostkeyChecking: 'pinned' },
      [/^hostkeyChecking: is no field of it; it has distribution, /],
    ],
    ['another check of host keys', { hostKeyChecking: 'off' }, ['hostKeyChecking: it must be pinned or skip-insecure']],
    ['a protection that is none', { protect: 'yes' }, ['protect: it must be true or false']],
    [
      'a misspelled checksum of the installer',
      { installer: { sha256sum: 'a' } },
      [/^installer\.sha256sum: is no field/],
    ],
    [
      'an installer of the wrong type',
      { installer: 'https://x' },
      ['installer: it must be an object with url or path, sha256 and artifacts, as far as they are needed'],
    ],
  ])('refuses %s, which JavaScript lets through', async (_, wrong, expected) => {
    const problems = await refusal({ ...cluster({}), ...wrong } as unknown as RemoteClusterArgs);
    expect(problems).toEqual(
      expected.map((problem) => (typeof problem === 'string' ? problem : (expect.stringMatching(problem) as string))),
    );
  });

  test('refuses arguments that are none', async () => {
    expect(await refusal(undefined as unknown as RemoteClusterArgs)).toEqual([': is required']);
  });

  test('takes an installer with a checksum in capital letters, and any path of a mirror', async () => {
    const installer = { url: 'https://mirror.example.com/~ops/k3s.sh', sha256: 'AB12'.repeat(16) };
    const found = await run(cluster({ installer }));
    expect(found.map(({ name }) => name)).toContain('prod/10.0.0.1/install');
  });

  test('lets an unpinned machine through only when told, and says so', async () => {
    const warn = jest.spyOn(pulumi.log, 'warn').mockResolvedValue(undefined);
    try {
      const nodes = [server(1, { hostKey: undefined }), agent(2)];
      const found = await run(cluster({ nodes, hostKeyChecking: 'skip-insecure' }));
      expect(warn).toHaveBeenCalledWith(
        expect.stringMatching(/^host keys are not checked for 10\.0\.0\.1: /),
        expect.anything(),
      );
      const { secret } = named(found, 'prod/10.0.0.2/install').inputs['connection'] as { secret: object };
      expect(secret).toMatchObject({ hostKey: hostKey(2) });
    } finally {
      warn.mockRestore();
    }
  });
});
