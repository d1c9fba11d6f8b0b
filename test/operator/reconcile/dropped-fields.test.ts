import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { CronTab, MicroServiceDeploy } from '../../../constructs/kinds';
import { Harness, ref } from './harness';

const { ConfigMap, CronJob, Deployment } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i', creationTimestamp: '7' };

function annotations(object: KubeObject): readonly string[] {
  return Object.keys(object.metadata.annotations ?? {}).sort();
}

describe('what is no longer rendered', () => {
  it('is dropped by the first change after the POST', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('m', spec);
    await harness.reconcile('m');
    expect(annotations(harness.live(Deployment, 'shop-1'))).toContain('app.ops.my.domain/last-rollout-at');
    harness.respec('m', { creationTimestamp: undefined });
    await harness.reconcile('m');
    const live = harness.live(Deployment, 'shop-1');
    expect(annotations(live)).toEqual(['kindred.dev/hash', 'kindred.dev/owner-uid']);
    expect(live).toHaveProperty('spec.template.metadata.annotations', { 'prometheus.io/scrape': 'true' });
  });

  it('is dropped after a restart too, because the hash tells', async () => {
    const harness = new Harness(CronTab);
    await harness.add('c', { cronSpec: '@hourly', image: 'i', timeZone: 'Europe/Berlin' });
    await harness.reconcile('c');
    harness.respec('c', { timeZone: undefined });
    await harness.reconcile('c');
    expect(harness.written.at(-1)).toMatchObject({ because: 'metadata.annotations.kindred.dev/hash' });
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
  });

  it('goes as a whole when it was a child: the ConfigMap, once the Deployment mounts the Secret', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('m', { ...spec, config: 'a=b' });
    await harness.reconcile('m');
    harness.respec('m', { config: undefined, configSecretRef: { name: 's', key: 'k' } });
    const { writes } = await harness.reconcile('m');
    expect(writes.filter((write) => !write.includes('/status'))).toEqual([
      'PATCH Deployment shop-1 (kindred)',
      'APPLY Deployment shop-1 (kindred)',
      'DELETE ConfigMap shop-1 (Background)',
    ]);
    expect(harness.server.peek(ConfigMap, ref('shop-1'))).toBeUndefined();
    expect(harness.live(Deployment, 'shop-1')).toMatchObject({
      spec: { template: { spec: { volumes: [{ name: 'log' }, { name: 'config', secret: { secretName: 's' } }] } } },
    });
    expect(harness.live(Deployment, 'shop-1')).not.toHaveProperty('spec.template.spec.volumes[1].configMap');
  });

  it('is not a CronTab that asks for nothing', async () => {
    const harness = new Harness(CronTab);
    await harness.add('c', undefined);
    expect((await harness.reconcile('c')).writes).toEqual(['APPLY CronTab c/status (kindred)']);
    expect(harness.conditions('c')).toEqual(['Ready=True NothingScheduled']);
    harness.respec('c', { cronSpec: '@daily', image: 'i' });
    await harness.reconcile('c');
    harness.server.edit(CronTab.type, ref('c'), ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }));
    expect((await harness.reconcile('c')).writes).toEqual([
      'DELETE CronJob c (Background)',
      'APPLY CronTab c/status (kindred)',
    ]);
  });
});
