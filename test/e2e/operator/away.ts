import { owned } from '../../../constructs/kube/resource-type';
import { CronTab, DemoMicroService, Foo, HelloApp } from '../../../constructs/kinds';
import type { Bench } from './support/bench';
import { ready } from './support/conditions';
import { childrenStand } from './support/expect-children';

/** What happens while no operator runs is made good by the next one. An operator must be at work already. */
export function awayTests(bench: Bench): void {
  test('edits, deletions, renames and dropped fields while it is away are made good', async () => {
    const namespace = await bench.namespace('away');
    const at = (name: string) => ({ namespace, name });
    await Promise.all([
      bench.make(HelloApp, at('edited'), { image: 'nginx:1' }),
      bench.make(HelloApp, at('bereft'), { image: 'nginx:1' }),
      bench.make(HelloApp, at('deleted'), { image: 'nginx:1' }),
      bench.make(Foo, at('renamed'), { deploymentName: 'old-name' }),
      bench.make(CronTab, at('trimmed'), { cronSpec: '@daily', image: 'busybox:1', timeZone: 'Asia/Tokyo' }),
      bench.make(DemoMicroService, at('finalized'), { image: 'podinfo:1' }),
    ]);
    for (const name of ['edited', 'bereft', 'deleted']) await bench.until(HelloApp.type, at(name), 'Ready', ready);
    await bench.until(Foo.type, at('renamed'), 'Ready', ready);
    await bench.until(CronTab.type, at('trimmed'), 'Ready', ready);
    await bench.until(DemoMicroService.type, at('finalized'), 'Ready', ready);

    await bench.operator.stop();
    await bench.patch(owned.Deployment, at('edited'), { spec: { replicas: 3 } });
    await bench.remove(owned.Deployment, at('bereft'));
    await bench.client.delete(HelloApp.type, at('deleted'));
    await bench.respec(Foo, at('renamed'), { deploymentName: 'new-name' });
    await bench.respec(CronTab, at('trimmed'), { timeZone: null });
    await bench.client.delete(DemoMicroService.type, at('finalized'));
    await bench.start();
    await bench.operator.working();

    await childrenStand(bench, HelloApp, await bench.get(HelloApp.type, at('edited')));
    await childrenStand(bench, HelloApp, await bench.get(HelloApp.type, at('bereft')));
    await childrenStand(bench, Foo, await bench.get(Foo.type, at('renamed')));
    await childrenStand(bench, CronTab, await bench.get(CronTab.type, at('trimmed')));
    const { spec } = (await bench.get(owned.CronJob, at('trimmed'))) as { spec?: { timeZone?: string } };
    expect(spec?.timeZone).toBeUndefined();
    for (const name of ['old-name', 'deleted', 'finalized']) await bench.gone(owned.Deployment, at(name));
    await bench.gone(DemoMicroService.type, at('finalized'));
    await bench.until(HelloApp.type, at('edited'), 'Ready', ready);
  });
}
