import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HelloApp } from '../../../constructs';
import { PlatformComponent } from '../../../stacks/components';
import { Engine, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';

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
/** Of the cluster that the platform is on. */
export const kubeconfig = grownKubeconfig(folder);
/** Of a file with that kubeconfig. */
export const path = join(folder, 'config');
writeFileSync(path, kubeconfig);

/** The title of a test of what a platform was made with. */
export const KEEPS = 'a platform that was made with %s keeps all that is installed';

/** Expects that a platform of before keeps all that is installed. */
export async function expectKept(_: string, target: Readonly<Record<string, unknown>>): Promise<void> {
  const a = new MemoryCluster('https://a.test');
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
}
