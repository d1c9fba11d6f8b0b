import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { Harness, ref } from './harness';

const { ConfigMap, Deployment, Service } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i', config: 'a=b' };

/** A MicroServiceDeploy whose Service somebody gives another selector again and again. */
async function contested(): Promise<Harness> {
  const harness = new Harness(MicroServiceDeploy);
  await harness.add('m', spec);
  await harness.reconcile('m');
  for (let i = 0; i < 3; i++) {
    harness.server.edit(
      Service,
      ref('shop-1'),
      (live) => ({ ...live, spec: { ...(live.spec as object), selector: { app: 'other' } } }),
      'mesh',
    );
    await harness.reconcile('m');
  }
  expect(harness.conditions('m')[0]).toBe('Ready=False ErrContested');
  expect(harness.message('m')).toContain('spec.selector.app is changed by "mesh"');
  return harness;
}

describe('a child that is corrected again and again', () => {
  it('keeps no other child from being changed, and none from being pruned', async () => {
    const harness = await contested();
    harness.respec('m', { image: 'j', config: undefined, configSecretRef: { name: 's', key: 'k' } });
    const { writes } = await harness.reconcile('m');
    expect(writes).toContain('APPLY Deployment shop-1 (kindred)');
    expect(writes).toContain('DELETE ConfigMap shop-1 (Background)');
    expect(harness.server.peek(ConfigMap, ref('shop-1'))).toBeUndefined();
    expect(harness.live(Deployment, 'shop-1')).toHaveProperty('spec.template.spec.containers[0].image', 'j');
    expect(harness.conditions('m')[0]).toBe('Ready=False ErrContested');
  });

  it('is reported as written each time it is corrected', async () => {
    const harness = await contested();
    const corrections = harness.written.filter(({ type, action }) => type === Service && action === 'applied');
    expect(corrections.map(({ because }) => because)).toEqual(Array(3).fill('spec.selector.app'));
  });
});
