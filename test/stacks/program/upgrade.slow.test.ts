import type * as pulumi from '@pulumi/pulumi';
import { Cluster, Kubeconfig, provisioner } from '../../../constructs';
import { KindComponent, PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { DeploymentError, Engine, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';
import { KEEPS, expectKept, kubeconfig, path } from './earlier-platform';

// The gate keeps a platform that was made with a context: upgrade.test.ts.

test.each<[string, Readonly<Record<string, unknown>>]>([
  ['a kubeconfig', { kubeconfig }],
  ['a kubeconfig and a context', { kubeconfig, context: 'a' }],
  ['the path in KUBECONFIG and a context', { kubeconfig: path, context: 'a' }],
])(KEEPS, expectKept);

describe('a Cluster', () => {
  let a: MemoryCluster;
  let b: MemoryCluster;
  beforeEach(() => {
    [a, b] = [new MemoryCluster('https://a.test'), new MemoryCluster('https://b.test')];
  });

  const operators = [provisioner({ image: 'pro:1', kinds: [Cluster, Kubeconfig] })];
  const program =
    (to: MemoryCluster, identifier: string, opts: pulumi.ComponentResourceOptions = {}) =>
    () => {
      const args: PlatformComponentArgs = {
        ...{ kubeconfig: MemoryCluster.kubeconfig({ it: to }), clusterIdentifier: identifier, operators },
      };
      const parent = new PlatformComponent('kindred', args);
      const spec = { configPath: 'prod.yml' };
      new KindComponent('prod', { kind: Cluster, metadata: { name: 'prod' }, spec }, { ...opts, parent });
    };

  test('is not deleted because the provider of its platform was replaced, nor with the stack', async () => {
    const engine = new Engine({ providers: [memoryClusters(a, b)] });
    await engine.up(program(a, 'a'));
    const uid = a.uids['Cluster prod'];
    expect(uid).toBeDefined();
    for (const run of [
      () => engine.preview(program(b, 'b')),
      () => engine.destroy(),
      () => engine.up(program(b, 'b')),
    ]) {
      const error: unknown = await run().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(DeploymentError);
      expect((error as Error).message).toMatch(/protected/);
      expect((error as Error).message).toMatch(/Cluster::prod/);
    }
    expect(a.uids['Cluster prod']).toBe(uid);
    expect(b.names).not.toContain('Cluster prod');
  });

  test('goes with the stack when somebody says so', async () => {
    const engine = new Engine({ providers: [memoryClusters(a, b)] });
    await engine.up(program(a, 'a'));
    await engine.up(program(a, 'a', { protect: false }));
    await engine.destroy();
    expect(a.names).not.toContain('Cluster prod');
  });
});
