import * as pulumi from '@pulumi/pulumi';
import { InvalidObjectError } from '../../../constructs';
import { RemoteCluster } from '../../../stacks/components/remote-cluster';
import type { RemoteClusterArgs } from '../../../stacks/components/remote-cluster';
import { agent, answers, cluster, hostKey, server } from './clusters';
import { named, opened, record, unknown } from './recorder';
import type { Registered } from './recorder';

// Each test registers some fifty resources, on machines that may be busy.
jest.setTimeout(60_000);

const COMMAND = /^command:/;
const run = (args: RemoteClusterArgs, { preview = false } = {}) =>
  record(() => new RemoteCluster('prod', args).provider, { preview, answers });

/** Everything of a resource that decides whether the next run does something to it. */
const inputsByName = (found: readonly Registered[]) =>
  new Map(found.map(({ name, inputs }) => [name, JSON.stringify(inputs)]));

function changed(before: readonly Registered[], after: readonly Registered[]) {
  const [old, now] = [inputsByName(before), inputsByName(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    gone: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now.keys()].filter((name) => old.has(name) && old.get(name) !== now.get(name)),
  };
}

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
    const guarded = async (more: Partial<RemoteClusterArgs>) =>
      (await run({ ...cluster({ nodes }), ...more } as RemoteClusterArgs))
        .filter((each) => each.protect)
        .map(({ name }) => name);
    const all = (await run(cluster({ nodes }))).map(({ name }) => name).filter((name) => name.endsWith('/removal'));
    expect(all.length).toBeGreaterThanOrEqual(3);
    expect(await guarded({})).toEqual(all);
    expect(await guarded({ protect: false })).toEqual([]);
    expect(await guarded({ removable: ['10.0.0.3'] })).toEqual(all.filter((name) => !name.includes('10.0.0.3')));
  });
});

describe('a change touches only what it must', () => {
  const three = [server(1), server(2), server(3)];

  test('nothing changed', async () => {
    const args = () => cluster({ nodes: [...three, agent(4)] });
    expect(changed(await run(args()), await run(args()))).toEqual({ added: [], gone: [], changed: [] });
  });

  test.each([
    ['in front', [agent(9), agent(4)]],
    ['behind', [agent(4), agent(9)]],
  ])('an agent is added %s', async (_, agents) => {
    const before = await run(cluster({ nodes: [...three, agent(4)] }));
    const diff = changed(before, await run(cluster({ nodes: [...three, ...agents] })));
    expect(diff.gone).toEqual([]);
    expect(diff.added.every((name) => name.startsWith('prod/10.0.0.9/'))).toBe(true);
    expect(diff.changed.filter((name) => name.startsWith('prod/10.0.0.'))).toEqual([]);
  });

  test('an agent is removed', async () => {
    const before = await run(cluster({ nodes: [...three, agent(4), agent(5)] }));
    const diff = changed(before, await run(cluster({ nodes: [...three, agent(5)] })));
    expect(diff.added).toEqual([]);
    expect(diff.gone.length).toBeGreaterThan(0);
    expect(diff.gone.every((name) => name.startsWith('prod/10.0.0.4/'))).toBe(true);
    expect(diff.changed.filter((name) => name.startsWith('prod/10.0.0.'))).toEqual([]);
  });

  test('a new SSH key changes no script', async () => {
    const before = await run(cluster());
    const after = await run(cluster({ sshKey: 'ANOTHER-KEY' }));
    const stdins = (found: readonly Registered[]) =>
      found.filter(({ type }) => COMMAND.test(type)).map(({ inputs }) => opened(inputs['stdin']));
    expect(stdins(after)).toEqual(stdins(before));
  });

  test('a machine is gone for ever: nothing is run on it, and its removal takes nothing away', async () => {
    const before = await run(cluster({ nodes: [...three, agent(4)] }));
    const after = await run(cluster({ nodes: [...three, agent(4)], lost: ['10.0.0.4'] }));
    const diff = changed(before, after);
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
  const late = () => agent(4, { name: 'late', address: deferred('10.0.0.4'), hostKey: deferred(hostKey(4)) });

  test('give the same as plain values, but for the name', async () => {
    const plain = await run(cluster({ nodes: [server(1), agent(4)] }));
    const output = await run(cluster({ nodes: [server(1), late()] }));
    const renamed = new Map(output.map((each) => [each.name.replace('/late/', '/10.0.0.4/'), each]));
    expect([...renamed.keys()].sort()).toEqual(plain.map(({ name }) => name).sort());
    for (const { name, inputs } of plain.filter(({ type }) => COMMAND.test(type))) {
      expect(renamed.get(name)?.inputs['stdin']).toEqual(inputs['stdin']);
      expect(renamed.get(name)?.inputs['connection']).toEqual(inputs['connection']);
    }
  });

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

  test('leave a preview with what the run does, where no more than a hash of them is part of it', async () => {
    const options = { registrationAddress: deferred('k8s.example.com'), tlsSans: [deferred('api.example.com')] };
    const nodes = [server(1, { internalAddress: deferred('10.1.0.1') }), server(2), server(3)];
    const creates = async (preview: boolean) =>
      (await run(cluster({ nodes, options }), { preview }))
        .filter(({ type }) => COMMAND.test(type))
        .map(({ name, inputs }) => [name, inputs['create'], inputs['delete']]);
    expect(await creates(true)).toEqual(await creates(false));
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
        expect.stringMatching(/^nodes\[0\]\.hostKey: 10\.0\.0\.1 must prove/),
        expect.stringMatching(/^nodes: no two entries may have the same address/),
        expect.stringMatching(/^nodes\[3\]\.name: "Not A Label" must be/),
        expect.stringMatching(/^lost\[0\]: "10\.9\.9\.9" is none of the nodes/),
        expect.stringMatching(/^dialAttempts: 0 must be/),
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
