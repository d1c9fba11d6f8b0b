import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as pulumi from '@pulumi/pulumi';
import { Cluster, HelloApp, Kubeconfig, provisioner } from '../../../constructs';
import { KindComponent, PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { DeploymentError, Engine, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';

// Several runs of the SDK a test, on whatever machine.
jest.setTimeout(120_000);

let a: MemoryCluster;
let b: MemoryCluster;
beforeEach(() => {
  [a, b] = [new MemoryCluster('https://a.test'), new MemoryCluster('https://b.test')];
});

interface Old {
  readonly name: string;
  readonly type: string;
  inputs: Record<string, unknown>;
  outputs: Record<string, unknown>;
  dependencies: string[];
  propertyDependencies: Record<string, string[]>;
}

/** A state as it was before a platform knew its cluster: without identity, its providers made of what the configuration said. */
function before(state: string, target: Readonly<Record<string, unknown>>): string {
  const { resources, ...rest } = JSON.parse(state) as { readonly resources: readonly Old[] };
  const old = resources.filter(({ name }) => name !== 'kindred-identity');
  for (const resource of old) {
    resource.dependencies = resource.dependencies.filter((urn) => !urn.endsWith('::kindred-identity'));
    if (resource.type !== 'pulumi:providers:kubernetes') continue;
    resource.propertyDependencies = {};
    const { upsertExistingObjects } = resource.inputs;
    resource.inputs = resource.outputs = { ...target, upsertExistingObjects };
  }
  return JSON.stringify({ ...rest, resources: old });
}

/** As tools write it: paths of this machine, and notes of their own. */
function grownKubeconfig(folder: string): string {
  const config = JSON.parse(MemoryCluster.kubeconfig({ a: new MemoryCluster('https://a.test') })) as {
    clusters: { cluster: object }[];
  };
  const authority = join(folder, 'ca.crt');
  writeFileSync(authority, 'authority');
  const notes = [{ name: 'cluster_info', extension: { provider: 'minikube' } }];
  config.clusters[0]!.cluster = {
    ...config.clusters[0]!.cluster,
    'certificate-authority': authority,
    extensions: notes,
  };
  return `${JSON.stringify(config)}\n`;
}

const folder = temporaryFolder('kindred-upgrade-');
const kubeconfig = grownKubeconfig(folder);
const path = join(folder, 'config');
writeFileSync(path, kubeconfig);

test.each<[string, Readonly<Record<string, unknown>>]>([
  ['a context', { context: 'a' }],
  ['a kubeconfig', { kubeconfig }],
  ['a kubeconfig and a context', { kubeconfig, context: 'a' }],
  ['the path in KUBECONFIG and a context', { kubeconfig: path, context: 'a' }],
])('a platform that was made with %s keeps all that is installed', async (_, target) => {
  const program = () => {
    const operators = [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }];
    new PlatformComponent('kindred', { kubeconfig, operators });
  };
  const first = new Engine({ providers: [memoryClusters(a)] });
  await first.up(program);
  const uids = a.uids;
  const engine = new Engine({ providers: [memoryClusters(a)], state: before(first.export(), target) });
  const result = await engine.up(program);
  expect(result.summary).toEqual([
    ...['create kindred-identity', 'create kindred-identity'],
    ...['update kindred-cluster', 'update kindred-namespace', 'update kindred-retained'],
  ]);
  expect(a.uids).toEqual(uids);
  expect((await engine.up(program)).summary).toEqual([]);
  await engine.destroy();
});

describe('a Cluster', () => {
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
