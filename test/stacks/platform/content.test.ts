import { HelloApp, MicroServiceDeploy } from '../../../constructs';
import { KindComponent, PlatformComponent } from '../../../stacks/components';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';

const operators = [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }];

test("on a platform, the content of children's ConfigMaps changes in place", async () => {
  const { engine, done } = new ObservedCluster();
  const program = (config: string) => () => {
    const platform = new PlatformComponent('kindred', { kubeconfig: KUBECONFIG, operators });
    const spec = { msName: 'shop', fullName: 'shop-v1', version: '1.0', path: 'v1', image: 'shop:1', config };
    const metadata = { name: 'shop', namespace: 'shop' };
    new KindComponent('shop', { kind: MicroServiceDeploy, metadata, spec, as: 'children' }, platform.objectOptions);
    return {};
  };
  await engine.up(program('a'));
  done.length = 0;
  expect((await engine.up(program('b'))).summary).toEqual(['update shop/ConfigMap-shop-v1']);
  expect(done).toEqual(['update shop/ConfigMap-shop-v1']);
});
