import { Engine, memoryClusters } from '../../support/pulumi-engine';
import { clusters, commands, stack } from './made-clusters';

// The way from a cluster that stands is in another-cluster.slow.test.ts.

test('a cluster of another name gets a platform of its own', async () => {
  const { prod, next } = clusters;
  const engine = new Engine({ providers: [commands, memoryClusters(prod, next)] });
  await engine.up(stack('prod', '10.0.0.1'));
  const platform = prod.names;
  expect(platform).toEqual(
    expect.arrayContaining(['Namespace kindred-system', 'Deployment kindred-system/kindred-operator']),
  );
  expect((await engine.up(stack('prod', '10.0.0.1'))).summary).toEqual([]);

  await engine.up(stack('next', '10.0.0.2'));
  expect(next.names).toEqual(platform);
  // What the stack keeps when it goes, it keeps here too.
  expect(prod.names.filter((name) => !/^(CustomResourceDefinition|Namespace) /.test(name))).toEqual([]);
});
