import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { KindComponent, KubernetesObject, PlatformComponent } from '../../../stacks/components';
import { named, run } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';
import type { ObservedClusterOptions } from '../memory-cluster';

const operators = [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }];
const OWN = ['kindred-cluster', 'kindred-identity', 'kindred-namespace', 'kindred-retained'];

const platform = (opts: pulumi.ComponentResourceOptions = {}, name = 'kindred') =>
  new PlatformComponent(name, { kubeconfig: KUBECONFIG, operators }, opts);

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
    const parent = platform({ parent: team('outermost', { providers: [other] }) });
    settings('direct', { parent });
    settings('deep', { parent: team('inner', { parent: team('outer', { parent }) }) });
    settings('elsewhere', { parent, provider: other });
    settings('deep-elsewhere', { parent: team('abroad', { parent, providers: { kubernetes: other } }) });
    platform({ parent }, 'second');
    settings('second-direct', { parent: platform({ parent }, 'third') });
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
  const program = (below: boolean) => () => {
    const parent = below ? team('team', {}) : undefined;
    const own = platform(parent === undefined ? {} : { parent });
    const metadata = { name: 'web', namespace: 'shop' };
    new KindComponent('sample', { kind: HelloApp, metadata, spec: { image: 'nginx' } }, { parent: own });
    return {};
  };

  /** A state as an earlier version left it. */
  async function earlier(below: boolean): Promise<Required<Pick<ObservedClusterOptions, 'before'>>> {
    const { engine, cluster } = new ObservedCluster();
    await engine.up(program(below));
    const state = JSON.parse(
      engine
        .export()
        .replaceAll(
          /kindred:platform:PlatformComponent\$(?=pulumi:|kubernetes:core\/v1:Namespace::kindred-identity)/g,
          '',
        ),
    ) as {
      readonly resources: readonly { readonly urn: string; readonly parent?: string }[];
    };
    const platformState = state.resources.find(({ urn }) => urn.endsWith(':PlatformComponent::kindred'));
    const resources = state.resources.map((resource) =>
      OWN.some((name) => resource.urn.endsWith(`::${name}`))
        ? { ...resource, parent: platformState?.parent }
        : resource,
    );
    expect(resources.filter(({ parent }) => parent === platformState?.urn).length).toBeGreaterThan(1);
    return { before: { state: JSON.stringify({ ...state, resources }), cluster } };
  }

  test.each([
    ['of the stack', false],
    ['of a component', true],
  ])('as a child %s: up changes nothing, and a second one does neither', async (_, below) => {
    const { engine, done } = new ObservedCluster(await earlier(below));
    expect(engine.state.resource('kindred-cluster').urn).not.toContain('PlatformComponent');
    expect((await engine.preview(program(below))).summary).toEqual([]);
    expect((await engine.up(program(below))).summary).toEqual([]);
    expect(engine.state.resource('kindred-cluster').urn).toContain('PlatformComponent$pulumi:providers:kubernetes::');
    expect((await engine.up(program(below))).summary).toEqual([]);
    expect(done).toEqual([]);
  });

  test('knows its cluster still: the one run that moves them refuses another', async () => {
    const { state } = (await earlier(false)).before;
    const { cluster } = new ObservedCluster();
    const { engine, done } = new ObservedCluster({ before: { state, cluster } });
    await expect(engine.up(program(false))).rejects.toThrow('the kubeconfig leads to another cluster');
    expect(done).toEqual([]);
  });

  test.each([
    [2, 'before'],
    [2, 'after'],
    [6, 'after'],
    [12, 'before'],
  ] as const)('interrupted at operation %d, %s it: the next up changes nothing', async (at, when) => {
    const { engine, done } = new ObservedCluster(await earlier(false));
    await expect(engine.up(program(false), { interrupt: { at, when }, parallel: 1 })).rejects.toThrow('was killed');
    expect((await engine.up(program(false))).summary).toEqual([]);
    expect(done).toEqual([]);
    await engine.destroy();
    expect(done).toContain('delete kindred/operators/operator/deployment');
  });
});
