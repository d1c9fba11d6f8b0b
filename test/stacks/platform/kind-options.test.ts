import * as pulumi from '@pulumi/pulumi';
import { HelloApp, MicroServiceDeploy } from '../../../constructs';
import { KindComponent, PlatformComponent } from '../../../stacks/components';
import { named, run } from '../bridge/engine';
import { KUBECONFIG } from './kubeconfigs';

const metadata = { name: 'web', namespace: 'shop' };
const spec = { image: 'nginx:1.27' };

const team = (name: string, parent: pulumi.Resource): pulumi.Resource =>
  new pulumi.ComponentResource('test:index:Team', name, {}, { parent });

describe('on a platform', () => {
  const operators = [{ name: 'operator', image: 'op', kinds: [HelloApp, MicroServiceDeploy] }];

  test.each([
    ['below it', (platform: PlatformComponent) => ({ parent: platform })],
    ['deeper below it', (platform: PlatformComponent) => ({ parent: team('inner', team('outer', platform)) })],
    ['with its options', (platform: PlatformComponent) => platform.objectOptions],
  ])('%s, it goes to the same cluster after the operators', async (_, options) => {
    const registrations = await run(() => {
      const platform = new PlatformComponent('kindred', { kubeconfig: KUBECONFIG, operators });
      new KindComponent('web', { kind: HelloApp, metadata, spec }, options(platform));
    });
    const object = registrations.find(({ type }) => type === 'kubernetes:apps.anupam.com/v1:HelloApp');
    const deployment = registrations.find(({ type }) => type === 'kubernetes:apps/v1:Deployment');
    expect(object?.dependencies).toContain(deployment?.urn);
    expect(object?.provider).toContain(named(registrations, 'kindred-cluster').urn);
  });

  test('as children, too, and what they share', async () => {
    const registrations = await run(() => {
      const platform = new PlatformComponent('kindred', { kubeconfig: KUBECONFIG, operators });
      const shop = { msName: 'shop', fullName: 'shop-v1', version: '1.0', path: 'v1', image: 'shop:1.0' };
      const parent = team('shops', platform);
      new KindComponent('shop', { kind: MicroServiceDeploy, metadata, spec: shop, as: 'children' }, { parent });
    });
    const operator = registrations.find(({ type, name }) => type.endsWith(':Deployment') && /^kindred/.test(name))!;
    const ours = registrations.filter(({ type, object }) => {
      const { name } = (object['metadata'] ?? {}) as { readonly name?: string };
      return type.startsWith('kubernetes:') && (name === 'shop' || name === 'shop-v1');
    });
    const after = (urn: string): readonly string[] => {
      const found = registrations.find((other) => other.urn === urn)?.dependencies ?? [];
      return [...found, ...found.flatMap(after)];
    };
    expect(ours.length).toBeGreaterThan(2);
    for (const { urn } of ours) expect(after(urn)).toContain(operator.urn);
  });
});

test.each(['resource', 'children'] as const)('as %s, retainOnDelete reaches its objects', async (as) => {
  const kept = async (opts: pulumi.ComponentResourceOptions): Promise<readonly boolean[]> => {
    const registrations = await run(() => new KindComponent('web', { kind: HelloApp, metadata, spec, as }, opts));
    return registrations.filter(({ custom }) => custom).map(({ retainOnDelete }) => retainOnDelete);
  };
  expect(await kept({ retainOnDelete: true })).toEqual([true]);
  expect(await kept({})).toEqual([false]);
});
