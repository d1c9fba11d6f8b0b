import * as pulumi from '@pulumi/pulumi';
import { agent, cluster, hostKey, server } from './clusters';
import { opened } from './recorder';
import type { Registered } from './recorder';
import { COMMAND, changed, run } from './recorded-cluster';

// The gate keeps the others: remote-cluster.test.ts.

describe('a change touches only what it must', () => {
  const three = [server(1), server(2), server(3)];

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

  test('leave a preview with what the run does, where no more than a hash of them is part of it', async () => {
    const options = { registrationAddress: deferred('k8s.example.com'), tlsSans: [deferred('api.example.com')] };
    const nodes = [server(1, { internalAddress: deferred('10.1.0.1') }), server(2), server(3)];
    const creates = async (preview: boolean) =>
      (await run(cluster({ nodes, options }), { preview }))
        .filter(({ type }) => COMMAND.test(type))
        .map(({ name, inputs }) => [name, inputs['create'], inputs['delete']]);
    expect(await creates(true)).toEqual(await creates(false));
  });
});
