import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { PlatformComponent, type PlatformComponentArgs } from '../../../stacks/components';
import { MemoryCluster, type Engine } from '../../support/pulumi-engine';
import { newCluster, newEngine } from '../program/platform-changes';
import { failure } from '../program/two-clusters';

// Runs that are killed: test/stacks/program/interrupted.test.ts.

const DEPLOYMENT = 'Deployment kindred-system/kindred-operator';

const program =
  (cluster: MemoryCluster, changes: Partial<PlatformComponentArgs>, opts: pulumi.ComponentResourceOptions = {}) =>
  (): object => {
    const operators = [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }];
    const kubeconfig = MemoryCluster.kubeconfig({ it: cluster });
    new PlatformComponent('kindred', { kubeconfig, operators, ...changes }, opts);
    return {};
  };

/** What stands, without the random part of the owner's name. */
const names = (cluster: MemoryCluster): readonly string[] =>
  cluster.names.map((name) => name.replace(/(?<=kindred-owner-)[0-9a-f-]{36}$/, 'id'));

async function start(): Promise<{ cluster: MemoryCluster; engine: Engine }> {
  const cluster = await newCluster();
  return { cluster, engine: newEngine(cluster) };
}

test.each([1, 16])(
  'an owner that is replaced on the same cluster loses nothing, with %d operations at a time',
  async (parallel) => {
    const { cluster, engine } = await start();
    await engine.up(program(cluster, { clusterIdentifier: 'a' }), { parallel });
    const before = names(cluster);
    expect(before).toContain(DEPLOYMENT);
    for (const clusterIdentifier of ['b', 'a']) {
      await engine.up(program(cluster, { clusterIdentifier }), { parallel });
      expect(names(cluster)).toEqual(before);
      expect((await engine.up(program(cluster, { clusterIdentifier }))).summary).toEqual([]);
    }
  },
);

test('an object that the state has under another name is not taken for a leftover', async () => {
  const { cluster, engine } = await start();
  const guarded = (...of: readonly string[]) =>
    program(cluster, { guardedNamespaces: of.map((one) => pulumi.output(one)) });
  await engine.up(guarded('shop', 'machines'));
  const uids = Object.entries(cluster.uids).filter(([name]) => name.includes(' machines/'));
  expect(uids.map(([name]) => name)).toEqual(expect.arrayContaining([expect.stringMatching(/^ResourceQuota/)]));
  expect(await failure(engine.up(guarded('machines')))).toMatch(
    /ResourceQuota machines\/\S+ exists already, as the resource kindred\/guardrails\/\S+ of this stack\. .*alias/,
  );
  expect(cluster.uids).toMatchObject(Object.fromEntries(uids));
});

test('an object that is retained, whoever says so, outlives the stack', async () => {
  const { cluster, engine } = await start();
  const retained: pulumi.ResourceTransformation = ({ type, props, opts }) =>
    type.endsWith(':ServiceAccount') ? { props, opts: { ...opts, retainOnDelete: true } } : undefined;
  await engine.up(program(cluster, {}, { transformations: [retained] }));
  await engine.destroy();
  expect(cluster.names).toContain('ServiceAccount kindred-system/kindred-operator');
  expect(cluster.names).not.toContain(DEPLOYMENT);
});

test('a warning does not show the credentials of a URL', async () => {
  const cluster = new MemoryCluster('http://me:pa55word@127.0.0.1:1');
  const { log } = await newEngine(cluster).up(program(cluster, {}));
  const [warning, ...more] = log.filter(({ severity }) => severity === 'warning');
  expect(more).toEqual([]);
  expect(warning?.message).toMatch(/^PlatformComponent kindred: it is not known whether an interrupted run/);
  expect(warning?.message).not.toContain('pa55word');
});
