import { Engine, memoryClusters } from '../../support/pulumi-engine';
import type { MemoryCluster } from '../../support/pulumi-engine';
import { clusters, commands, onOther, other, stack } from './made-clusters';

// The gate keeps the way to a cluster of another name: another-cluster.test.ts.

test('from a cluster that stands to one that is made, and back', async () => {
  const { prod } = clusters;
  const engine = new Engine({ providers: [commands, memoryClusters(prod, other)] });
  const stays = /^(CustomResourceDefinition|Namespace) /;
  const isInstalled = (cluster: MemoryCluster): boolean => cluster.names.some((name) => name.startsWith('Deployment '));
  await engine.up(onOther);
  expect([isInstalled(other), isInstalled(prod)]).toEqual([true, false]);
  for (const [program, to, from] of [
    [stack('prod', '10.0.0.1'), prod, other],
    [onOther, other, prod],
  ] as const) {
    await engine.up(program);
    expect(isInstalled(to)).toBe(true);
    expect(from.names.filter((name) => !stays.test(name))).toEqual([]);
    expect((await engine.up(program)).summary).toEqual([]);
  }
});
