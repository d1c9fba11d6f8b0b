import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { KubernetesObject } from '../../../stacks/components';
import { named, run } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';
import { OWN, UNCHANGED, earlier, expectUnchanged, program } from './providers-beside';
import { platform } from './small-platform';

// Interrupted runs, and a platform below a component, are in providers.slow.test.ts.

const settings = (name: string, opts: pulumi.CustomResourceOptions) =>
  new KubernetesObject(
    name,
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' } },
    opts,
  );

const team = (name: string, opts: pulumi.ComponentResourceOptions) =>
  new pulumi.ComponentResource('test:index:Team', name, {}, opts);

/** Name of the provider of a resource. */
function providerOf(registrations: readonly Registration[], name: string): string | undefined {
  const { provider } = named(registrations, name);
  return registrations.find(({ urn }) => provider.startsWith(`${urn}::`))?.name;
}

test('the providers are children of their platform', async () => {
  const registrations = await run(() => platform());
  const { urn } = registrations.find(({ type }) => type.endsWith(':PlatformComponent'))!;
  const providers = registrations.filter(({ type }) => type === 'pulumi:providers:kubernetes');
  expect(providers.map(({ name, parent }) => [name, parent]).sort()).toEqual(OWN.map((name) => [name, urn]));
});

test('whatever is made below a platform goes to its cluster, unless it is told otherwise', async () => {
  const registrations = await run(() => {
    const other = new Provider('other', { kubeconfig: KUBECONFIG });
    const parent = platform({}, { parent: team('outermost', { providers: [other] }) });
    settings('direct', { parent });
    settings('deep', { parent: team('inner', { parent: team('outer', { parent }) }) });
    settings('elsewhere', { parent, provider: other });
    settings('deep-elsewhere', { parent: team('abroad', { parent, providers: { kubernetes: other } }) });
    platform({}, { parent }, 'second');
    settings('second-direct', { parent: platform({}, { parent }, 'third') });
    expect(parent.getProvider('kubernetes:core/v1:ConfigMap')).toBe(parent.provider);
    expect(parent.getProvider('aws:s3:Bucket')).toBeUndefined();
  });
  const found = ['direct', 'deep', 'elsewhere', 'deep-elsewhere', 'second/namespace', 'second-direct'].map((name) => [
    name,
    providerOf(registrations, name),
  ]);
  expect(Object.fromEntries(found)).toEqual({
    direct: 'kindred-cluster',
    deep: 'kindred-cluster',
    elsewhere: 'other',
    'deep-elsewhere': 'other',
    'second/namespace': 'second-namespace',
    'second-direct': 'third-cluster',
  });
});

describe('a stack whose providers stood beside the platform', () => {
  test.each([['of the stack', false]])(UNCHANGED, expectUnchanged);

  test('knows its cluster still: the one run that moves them refuses another', async () => {
    const { state } = (await earlier(false)).before;
    const { cluster } = new ObservedCluster();
    const { engine, done } = new ObservedCluster({ before: { state, cluster } });
    await expect(engine.up(program(false))).rejects.toThrow('the kubeconfig leads to another cluster');
    expect(done).toEqual([]);
  });
});

describe('PULUMI_K8S_DELETE_UNREACHABLE', () => {
  const surroundings = process.env;
  beforeEach(() => (process.env = { ...surroundings }));
  afterEach(() => (process.env = surroundings));

  test.each(['true', '1'])('=%s is refused before anything is registered', async (value) => {
    process.env['PULUMI_K8S_DELETE_UNREACHABLE'] = value;
    const registrations = await run(() => {
      expect(() => platform()).toThrow(
        /^PlatformComponent kindred: PULUMI_K8S_DELETE_UNREACHABLE is set, .* Unset it$/,
      );
    });
    expect(registrations).toEqual([]);
  });

  test('=false is as if it were not set', async () => {
    process.env['PULUMI_K8S_DELETE_UNREACHABLE'] = 'false';
    const registrations = await run(() => platform());
    expect(registrations.filter(({ type }) => type.endsWith(':Deployment'))).toHaveLength(1);
  });
});
