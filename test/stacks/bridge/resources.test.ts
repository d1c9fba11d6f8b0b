import * as pulumi from '@pulumi/pulumi';
import { App, Chart, JsonPatch } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { BridgeError, ConstructResources, resourceOptions } from '../../../stacks/bridge';
import { named, run } from './engine';
import { crd, object } from './objects';

const TREE = 'kindred:constructs:ConstructResources';
const CONSTRUCT = 'kindred:constructs:Construct';

describe('resources', () => {
  it('are named by construct path, below components of the constructs around them', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            const web = new Construct(new Construct(chart, 'group'), 'web');
            object(web, 'deployment', { apiVersion: 'apps/v1', kind: 'Deployment' });
            new Construct(chart, 'empty');
          },
        }),
    );
    expect(registrations.map(({ name, type }) => [name, type])).toEqual([
      ['tree', TREE],
      ['tree/group', CONSTRUCT],
      ['tree/group/web', CONSTRUCT],
      ['tree/group/web/deployment', 'kubernetes:apps/v1:Deployment'],
    ]);
    expect(named(registrations, 'tree/group/web/deployment').parent).toMatch(/::tree\/group\/web$/);
    expect(named(registrations, 'tree/group/web').parent).toMatch(/::tree\/group$/);
  });

  it('have the types and the version of the provider, whatever the group', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            object(chart, 'core');
            object(chart, 'role', { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' });
            crd(chart, 'crd', 'example.com', 'Thing', { versions: [{ name: 'v1' }, { name: 'v1beta1' }] });
            object(chart, 'cr', { apiVersion: 'example.com/v1', kind: 'Thing' });
          },
        }),
    );
    const version = jest.requireActual<{ version: string }>('@pulumi/kubernetes/package.json').version;
    expect(['core', 'role', 'crd', 'cr'].map((id) => named(registrations, `tree/${id}`).type)).toEqual([
      'kubernetes:core/v1:ConfigMap',
      'kubernetes:rbac.authorization.k8s.io/v1:ClusterRole',
      'kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition',
      'kubernetes:example.com/v1:Thing',
    ]);
    expect(named(registrations, 'tree/core').version).toBe(version);
    // A CR that moves to another version of its CRD is the same object.
    expect(named(registrations, 'tree/cr').aliasTypes).toEqual(['kubernetes:example.com/v1beta1:Thing']);
  });

  it('render cdk8s-plus as cdk8s does', async () => {
    const app = new App();
    const chart = new Chart(app, 'web', { namespace: 'apps' });
    const deployment = new kplus.Deployment(chart, 'deployment', { containers: [{ image: 'nginx', portNumber: 80 }] });
    deployment.exposeViaService();
    const registrations = await run(() => new ConstructResources('tree', { constructs: chart }));
    const [service, ...rest] = registrations.filter(({ type }) => type.endsWith(':Service'));
    expect(rest).toEqual([]);
    const objects = [named(registrations, 'tree/deployment/Resource').object, service?.object];
    expect(objects).toEqual(chart.toJson());
  });

  it('give their outputs and can be found by their construct', async () => {
    let uid: string | undefined;
    let names: readonly string[] = [];
    let foreign: unknown;
    await run(
      async () => {
        const chart = new Chart(new App(), 'app', { namespace: 'apps' });
        const config = object(chart, 'config');
        const tree = new ConstructResources('tree', { constructs: chart });
        names = [...tree.resources.keys()];
        uid = await new Promise<string>((resolve) =>
          tree.resourceOf(config).metadata.apply(({ uid: id }) => resolve(id)),
        );
        try {
          tree.resourceOf(object(new Chart(new App(), 'app'), 'config'));
        } catch (error) {
          foreign = error;
        }
      },
      { state: () => ({ metadata: { uid: 'u-1' } }) },
    );
    expect(uid).toBe('u-1');
    expect(names).toEqual(['config']);
    expect(String(foreign)).toContain('app/config, which is not in its tree');
  });

  it('bear the options of their construct and of those around it', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            const group = new Construct(chart, 'group');
            resourceOptions(group, { protect: true, ignoreChanges: ['spec.a'], await: { timeoutSeconds: 60 } });
            const a = object(group, 'a');
            resourceOptions(a, {
              protect: false,
              retainOnDelete: true,
              ignoreChanges: ['spec.b'],
              await: { skip: true },
            });
            resourceOptions(a, { deleteBeforeReplace: true, replaceOnChanges: ['spec.c'], import: 'apps/a' });
            object(group, 'b');
            resourceOptions(object(chart, 'c'), { await: { waitFor: ['condition=Ready', 'jsonpath={.x}=y'] } });
          },
        }),
    );
    expect(named(registrations, 'tree/group/a')).toMatchObject({
      protect: false,
      retainOnDelete: true,
      ignoreChanges: ['spec.a', 'spec.b'],
      replaceOnChanges: ['spec.c'],
      deleteBeforeReplace: true,
      importId: 'apps/a',
      timeouts: ['60s', '60s', '60s'],
      object: { metadata: { annotations: { 'pulumi.com/skipAwait': 'true' } } },
    });
    const b = named(registrations, 'tree/group/b');
    expect(b).toMatchObject({ protect: true, ignoreChanges: ['spec.a'], deleteBeforeReplace: undefined, importId: '' });
    expect(b.object['metadata']).toEqual({ name: 'b', namespace: 'apps' });
    expect(named(registrations, 'tree/c').object['metadata']).toMatchObject({
      annotations: { 'pulumi.com/waitFor': '["condition=Ready","jsonpath={.x}=y"]' },
    });
  });

  it('use the provider of the tree, or that of their construct', async () => {
    class Provider extends pulumi.ProviderResource {
      constructor(name: string) {
        super('kubernetes', name, {});
      }
    }
    const registrations = await run(() => {
      const own = new Provider('own');
      new ConstructResources(
        'tree',
        {
          namespace: 'apps',
          build: (chart) => {
            object(new Construct(chart, 'group'), 'a');
            resourceOptions(object(chart, 'b'), { provider: own });
          },
        },
        { provider: new Provider('main') },
      );
    });
    expect(named(registrations, 'tree/group/a').provider).toContain('::main::');
    expect(named(registrations, 'tree/b').provider).toContain('::own::');
  });

  it('know where their construct stood before', async () => {
    const before = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            object(new Construct(new Construct(chart, 'old'), 'place'), 'a');
            object(new Construct(chart, 'group'), 'b');
          },
        }),
    );
    const after = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            resourceOptions(object(chart, 'a'), { aliases: ['old/place/a'] });
            const renamed = new Construct(chart, 'renamed');
            resourceOptions(renamed, { aliases: ['group'] });
            object(renamed, 'b');
          },
        }),
    );
    const tree = `urn:pulumi:stack::project::${TREE}`;
    expect(named(after, 'tree/a').aliasUrns).toEqual([
      `${tree}$${CONSTRUCT}$${CONSTRUCT}$kubernetes:core/v1:ConfigMap::tree/old/place/a`,
    ]);
    // What stands below follows, since its name starts with that of its component.
    expect(named(after, 'tree/renamed').aliasUrns).toEqual([`${tree}$${CONSTRUCT}::tree/group`]);
    expect(named(before, 'tree/group/b').type).toBe(named(after, 'tree/renamed/b').type);
  });

  it('of Secrets keep their values secret, not their keys', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => object(chart, 's', { kind: 'Secret', stringData: { a: 'x' }, type: 'Opaque' }),
        }),
    );
    const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', value: 'x' };
    expect(named(registrations, 'tree/s').object).toMatchObject({ stringData: { a: secret }, type: 'Opaque' });
    expect(named(registrations, 'tree/s').additionalSecretOutputs).toEqual(['data', 'stringData']);
  });
});

describe('where objects live', () => {
  it('is explicit: the namespace is filled in, and none stands on objects of the cluster', async () => {
    const app = new App();
    const chart = new Chart(app, 'app', { namespace: 'apps' });
    object(chart, 'role', { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' });
    crd(chart, 'crd', 'example.com', 'Global', { scope: 'Cluster' });
    object(chart, 'cr', { apiVersion: 'example.com/v1', kind: 'Global' });
    const bare = new Chart(app, 'bare');
    object(bare, 'config');
    resourceOptions(object(bare, 'issuer', { apiVersion: 'acme.test/v1', kind: 'Issuer' }), { scope: 'Cluster' });
    const registrations = await run(() => new ConstructResources('tree', { constructs: app, namespace: 'filled' }));
    const namespaces = registrations
      .filter(({ custom }) => custom)
      .map(({ name, object: { metadata } }) => [name, (metadata as { namespace?: string }).namespace]);
    expect(Object.fromEntries(namespaces)).toEqual({
      'tree/app/role': undefined,
      'tree/app/crd': undefined,
      'tree/app/cr': undefined,
      'tree/bare/config': 'filled',
      'tree/bare/issuer': undefined,
    });
  });

  it('is asked for where it is not known, all objects at once, and nothing is registered', async () => {
    let error: unknown;
    const registrations = await run(() => {
      try {
        new ConstructResources('tree', {
          build: (chart) => {
            object(chart, 'config');
            object(chart, 'issuer', { apiVersion: 'acme.test/v1', kind: 'Issuer' });
            object(chart, 'unnamed', { namespace: 'a' }).addJsonPatch(JsonPatch.remove('/metadata/name'));
            object(chart, 'one', { namespace: 'a', name: 'same' });
            object(chart, 'two', { namespace: 'a', name: 'same' });
          },
        });
      } catch (caught) {
        error = caught;
      }
    });
    expect(registrations).toEqual([]);
    expect(error).toBeInstanceOf(BridgeError);
    expect((error as BridgeError).problems.map(({ path, message }) => `${path}: ${message.slice(0, 50)}`)).toEqual([
      'config: ConfigMap "config" has no namespace; set metadata.',
      'issuer: it is not known whether Issuer "issuer" (acme.test',
      'unnamed: the ConfigMap has no metadata.name; name it, since',
      'two: it is the same object as one: ConfigMap "same"',
    ]);
  });
});
