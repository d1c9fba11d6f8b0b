import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { HelloApp, Foo, InvalidPropsError, Platform } from '../../../constructs';
import { PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { App, Testing } from 'cdk8s';
import type { KubeObject } from '../../../constructs';
import { UNKNOWN, dependencyNames, named, run, wrapped } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { KUBECONFIG, MINIMAL, useKubeconfigFile } from './kubeconfigs';
import { unknownOutput } from './unknown';

useKubeconfigFile();

const CRD = 'kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition';
const crd = `kindred/crds/${HelloApp.crdName}`;
const operators = [{ name: 'operator', image: 'registry.example.com/op:1', kinds: [HelloApp, Foo] }];
const guardedNamespaces = ['shop', { name: 'made', create: true }];
const args: PlatformComponentArgs = { kubeconfig: KUBECONFIG, operators, guardedNamespaces };

/** Name of the owner: the ID of a stash is random, but under mocks. */
const OWNER = 'kindred-owner-kindred-owner-id-id';

/** For platforms whose providers know the cluster. */
const rest: PlatformComponentArgs = { operators };

const platform = (changes: Partial<PlatformComponentArgs> = {}, opts: pulumi.ComponentResourceOptions = {}) =>
  new PlatformComponent('kindred', { ...args, ...changes }, opts);

/** Without what tells the cluster, and what owns the objects. */
const ofPlatform = (registrations: readonly Registration[]): readonly Registration[] =>
  registrations.filter(
    ({ type, name, custom }) =>
      custom && !type.startsWith('pulumi:') && !['kindred-identity', 'kindred-owner'].includes(name),
  );

function providerOf(registrations: readonly Registration[], name: string): string {
  const urn = named(registrations, name).provider.replace(/::[^:]+$/, '');
  return registrations.find((other) => other.urn === urn)?.name ?? urn;
}

/** Everything that a resource waits for, directly or not. */
function closure(registrations: readonly Registration[], name: string): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (at: string): void => {
    for (const next of dependencyNames(registrations, at)) {
      if (found.has(next)) continue;
      found.add(next);
      add(next);
    }
  };
  add(name);
  return found;
}

describe('the resources', () => {
  test('are those of the Platform construct; all but kept ones and namespaces have the owner', async () => {
    const state = (_: string, name: string) =>
      name === 'kindred-owner' ? { metadata: { name: OWNER, uid: 'owner-uid' } } : {};
    const registrations = await run(() => platform(), { state });
    const expected = Testing.synth(
      new Platform(new App(), 'kindred', { operators, guardedNamespaces }),
    ) as KubeObject[];
    const objects = ofPlatform(registrations);
    const { object: owner } = named(registrations, 'kindred-owner');
    const plain = objects.map(({ object, retainOnDelete }) => {
      const { metadata: all, ...rest } = object as KubeObject;
      const { ownerReferences, ...metadata } = all;
      const { apiVersion, kind, metadata: of } = owner as unknown as KubeObject;
      const reference = { apiVersion, kind, name: of.name, uid: 'owner-uid', blockOwnerDeletion: true };
      expect([all.name, ownerReferences]).toEqual([all.name, retainOnDelete ? undefined : [reference]]);
      const annotations = Object.entries(metadata.annotations ?? {}).filter(
        ([key]) => !/^(pulumi\.com|kindred\.dev)\//.test(key),
      );
      const others = Object.fromEntries(Object.entries(metadata).filter(([key]) => key !== 'annotations'));
      return {
        ...rest,
        metadata: { ...others, ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations) }) },
      };
    });
    const byId = (list: readonly object[]): Record<string, object> =>
      Object.fromEntries(
        list.map((object) => {
          const { kind, metadata } = object as KubeObject;
          return [`${kind} ${metadata.namespace ?? ''}/${metadata.name}`, object];
        }),
      );
    expect(byId(plain)).toEqual(byId(expected));
    expect(plain).toHaveLength(expected.length);
  });

  test('are made in the order namespace, CRD, permissions, operator', async () => {
    const registrations = await run(() => platform());
    expect(dependencyNames(registrations, crd)).toEqual(['kindred/namespace']);
    const deployment = registrations.find(({ type }) => type === 'kubernetes:apps/v1:Deployment')?.name ?? '';
    const before = closure(registrations, deployment);
    const permissions = registrations.filter(({ name, custom }) => custom && name.startsWith('kindred/rbac/'));
    expect(permissions.length).toBeGreaterThan(3);
    for (const { name } of permissions) {
      expect(before).toContain(name);
      expect(closure(registrations, name)).toContain(crd);
    }
  });

  test('wait until CRDs are served, and for no pods of Services', async () => {
    const registrations = await run(() => platform());
    expect(named(registrations, crd)).toMatchObject({
      object: {
        metadata: {
          annotations: {
            'pulumi.com/waitFor': 'condition=Established',
            'pulumi.com/patchFieldManager': 'kindred-platform',
          },
        },
      },
      timeouts: ['120s', '120s', '120s'],
    });
    const services = registrations.filter(({ type }) => type === 'kubernetes:core/v1:Service');
    expect(services).toHaveLength(1);
    expect(services[0]?.object).toMatchObject({ metadata: { annotations: { 'pulumi.com/skipAwait': 'true' } } });
  });

  test('CRDs and namespaces that were made stay in the cluster, and are taken over; nothing else', async () => {
    const registrations = await run(() => platform());
    const kept = registrations.filter(({ retainOnDelete }) => retainOnDelete).map(({ name }) => name);
    expect(kept.sort()).toEqual(
      [`kindred/crds/${Foo.crdName}`, crd, 'kindred/guardrails/made/namespace', 'kindred/namespace'].sort(),
    );
    const objects = ofPlatform(registrations);
    for (const { name, retainOnDelete } of objects) {
      const keeps = name === 'kindred/namespace' ? 'kindred-namespace' : 'kindred-retained';
      expect(providerOf(registrations, name)).toBe(retainOnDelete ? keeps : 'kindred-cluster');
    }
    expect(named(registrations, 'kindred-retained').object).toMatchObject({
      upsertExistingObjects: 'true',
      enablePatchForce: 'true',
    });
    expect(named(registrations, 'kindred-cluster').object).toMatchObject({ upsertExistingObjects: 'false' });
  });

  test('only CRDs are protected, and only on request', async () => {
    const protectedIn = async (changes: Partial<PlatformComponentArgs>): Promise<readonly string[]> =>
      (await run(() => platform(changes))).filter((one) => one.protect).map(({ type }) => type);
    expect(await protectedIn({})).toEqual([]);
    expect(await protectedIn({ protect: true })).toEqual([CRD, CRD]);
  });
});

describe('the cluster', () => {
  // Neither the project nor the stack stands in it: a renamed one would replace everything.
  const identifier = 'kindred';
  const providers = ['kindred-cluster', 'kindred-namespace', 'kindred-retained'];

  test('a kubeconfig is a secret, however it was given', async () => {
    for (const kubeconfig of [KUBECONFIG, pulumi.secret(KUBECONFIG), pulumi.output(KUBECONFIG)]) {
      const registrations = await run(() => platform({ kubeconfig }));
      for (const name of providers) expect(named(registrations, name).object['kubeconfig']).toEqual(wrapped(MINIMAL));
    }
  });

  test('has an identifier that no kubeconfig changes, and which may be given', async () => {
    for (const kubeconfig of [KUBECONFIG, pulumi.output(KUBECONFIG)]) {
      const registrations = await run(() => platform({ kubeconfig }));
      for (const name of providers) expect(named(registrations, name).object['clusterIdentifier']).toBe(identifier);
    }
    const given = await run(() => platform({ clusterIdentifier: 'prod' }));
    for (const name of providers) expect(named(given, name).object['clusterIdentifier']).toBe('prod');
    expect(given.filter(({ name }) => name === 'kindred-identity')).toEqual([]);
  });

  test('an unknown kubeconfig leaves everything else known in a preview', async () => {
    const registrations = await run(() => platform({ kubeconfig: unknownOutput<string>() }), {
      preview: true,
    });
    for (const name of providers) {
      const { object } = named(registrations, name);
      expect(object).toMatchObject({ clusterIdentifier: identifier, kubeconfig: UNKNOWN });
    }
    expect(JSON.stringify(registrations.filter(({ type }) => type.startsWith('kubernetes:')))).not.toContain(UNKNOWN);
  });

  test('an image may be an Output', async () => {
    const image = pulumi.output('registry.example.com/later:2');
    const registrations = await run(() => platform({ operators: [{ ...operators[0]!, image }] }));
    const deployment = registrations.find(({ type }) => type === 'kubernetes:apps/v1:Deployment');
    expect(JSON.stringify(deployment?.object)).toContain('"registry.example.com/later:2"');
  });

  test('providers of the program are used, both of them', async () => {
    const registrations = await run(() => {
      const [one, two] = ['one', 'two'].map((name) => new Provider(name, {}));
      new PlatformComponent('kindred', { ...rest, crdProvider: two! }, { provider: one! });
    });
    expect(providerOf(registrations, crd)).toBe('two');
    expect(providerOf(registrations, 'kindred/namespace')).toBe('one');
    expect(registrations.filter(({ type }) => type.startsWith('pulumi:providers'))).toHaveLength(2);
  });

  test.each([
    ['a provider without one for CRDs', {}, 'both `provider`'],
    ['a provider besides a kubeconfig', { kubeconfig: KUBECONFIG }, 'leave kubeconfig'],
  ])('%s is refused', async (_, changes, message) => {
    await run(() => {
      const provider = new Provider('one', {});
      expect(() => new PlatformComponent('kindred', { ...rest, ...changes }, { provider })).toThrow(message);
    });
  });

  describe('of its parent', () => {
    const below = (changes: Partial<PlatformComponentArgs>): PlatformComponent => {
      const kubernetes = new Provider('parents', {});
      const parent = new pulumi.ComponentResource('test:index:Environment', 'env', {}, { providers: { kubernetes } });
      return new PlatformComponent('kindred', { ...rest, ...changes }, { parent });
    };

    test('is not passed over: the one for CRDs has to be given, too', async () => {
      await run(() => {
        expect(() => below({})).toThrow(
          /^PlatformComponent kindred: its parent has a kubernetes provider: give both `provider` .* and `crdProvider`/,
        );
        expect(() => below({ clusterIdentifier: 'prod', crdProvider: new Provider('crds', {}) })).toThrow(
          /its parent has a kubernetes provider, which knows the cluster; leave kubeconfig/,
        );
      });
    });

    test('is used, with one for CRDs', async () => {
      const registrations = await run(() => below({ crdProvider: new Provider('crds', {}) }));
      expect(providerOf(registrations, crd)).toBe('crds');
      expect(providerOf(registrations, 'kindred/namespace')).toBe('parents');
    });

    test('is not meant where a cluster is named', async () => {
      const registrations = await run(() => below({ context: 'prod' }));
      expect(providerOf(registrations, 'kindred/namespace')).toBe('kindred-namespace');
      expect(named(registrations, 'kindred-namespace').object['kubeconfig']).toEqual(wrapped(MINIMAL));
    });
  });

  test('what the platform depends on comes before its first object, and after its last when it goes', async () => {
    const registrations = await run(() => {
      const first = new Provider('first', {});
      platform({}, { dependsOn: [first] });
    });
    for (const name of [...providers, 'kindred/namespace'])
      expect(dependencyNames(registrations, name)).toContain('first');
  });
});

test('outputs say what is installed', async () => {
  let component: PlatformComponent | undefined;
  await run(() => {
    component = platform();
  });
  const value = async (output: pulumi.Output<unknown> | undefined): Promise<unknown> =>
    new Promise((resolve) => void output?.apply(resolve));
  expect(await value(component?.namespace)).toBe('kindred-system');
  expect(await value(component?.installedKinds)).toEqual([Foo.crdName, HelloApp.crdName].sort());
  expect(await value(component?.crdVersions)).toEqual({ [Foo.crdName]: ['v1alpha1'], [HelloApp.crdName]: ['v1'] });
  expect(await value(component?.operatorImages)).toEqual({ operator: 'registry.example.com/op:1' });
});

test('what is wrong with the platform is said before anything is registered', async () => {
  const registrations = await run(() => {
    expect(() => platform({ operators: [] })).toThrow(InvalidPropsError);
  });
  expect(registrations.filter(({ type }) => type !== 'pulumi:pulumi:Stack')).toEqual([]);
});
