import { Provider } from '@pulumi/kubernetes/provider';
import type * as pulumi from '@pulumi/pulumi';
import { Cluster, HelloApp, Kubeconfig, provisioner } from '../../../constructs';
import { PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { named, run } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { useKubeconfigFile } from './kubeconfigs';

useKubeconfigFile();

const operator = { name: 'operator', image: 'op:1', kinds: [HelloApp] };
const keeper = provisioner({ image: 'pro:1', kinds: [Cluster, Kubeconfig] });

const platform = (changes: Partial<PlatformComponentArgs>, opts: pulumi.ComponentResourceOptions = {}) =>
  run(() => new PlatformComponent('kindred', { context: 'a', operators: [operator], ...changes }, opts));

function namespaceOf(registrations: readonly Registration[]) {
  const { retainOnDelete, provider, object } = named(registrations, 'kindred/namespace');
  const way = registrations.find(({ urn }) => provider.startsWith(`${urn}::`));
  return {
    retainOnDelete,
    way: way?.name,
    takesOver: way?.object['upsertExistingObjects'],
    metadata: object['metadata'],
  };
}

describe("the operators' namespace", () => {
  test.each([
    ['with a provisioner', [operator, keeper]],
    ['without one', [operator]],
  ] as const)('stays when the platform goes, and is taken over, %s', async (_, operators) => {
    expect(namespaceOf(await platform({ operators }))).toMatchObject({
      ...{ retainOnDelete: true, way: 'kindred-namespace', takesOver: 'true' },
      metadata: { name: 'kindred-system', annotations: { 'pulumi.com/patchFieldManager': 'kindred-platform' } },
    });
  });

  // Another provider would make Pulumi replace the namespace: take it over, and then delete it.
  test('has the same provider and says the same when it is not to stay, and one that stands is not touched', async () => {
    const [stays, goes] = [namespaceOf(await platform({})), namespaceOf(await platform({ keepNamespace: false }))];
    expect(goes).toEqual({ ...stays, retainOnDelete: false, takesOver: 'false' });
  });

  test('cannot be kept by a platform that does not create it', async () => {
    for (const keepNamespace of [true, false]) {
      await run(() => {
        const args = { context: 'a', operators: [operator], createNamespace: false, keepNamespace };
        expect(() => new PlatformComponent('kindred', args)).toThrow(/leave it out with createNamespace: false/);
      });
    }
  });

  test('with providers of the program, has theirs', async () => {
    const given = async (names: readonly string[]) => {
      const registrations = await run(() => {
        const [provider, crdProvider, namespaceProvider] = names.map((name) => new Provider(name, {}));
        const ways = { crdProvider: crdProvider!, ...(namespaceProvider === undefined ? {} : { namespaceProvider }) };
        new PlatformComponent('kindred', { operators: [keeper], ...ways }, { provider: provider! });
      });
      return namespaceOf(registrations);
    };
    expect(await given(['main', 'crds'])).toMatchObject({ retainOnDelete: true, way: 'main' });
    expect(await given(['main', 'crds', 'namespaces'])).toMatchObject({ retainOnDelete: true, way: 'namespaces' });
  });

  test('that somebody else creates needs no provider of its own', async () => {
    const registrations = await platform({ operators: [operator, keeper], createNamespace: false });
    const providers = registrations.filter(({ type }) => type.startsWith('pulumi:providers'));
    expect(providers.map(({ name }) => name).sort()).toEqual([
      'kindred-cluster',
      'kindred-identity',
      'kindred-retained',
    ]);
  });
});
