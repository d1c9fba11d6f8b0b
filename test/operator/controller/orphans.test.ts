import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { ref } from '../reconcile/harness';
import { RunningController } from './running-controller';

const { Deployment } = owned;

describe('an object deleted with --cascade=orphan, while the watch of its kind is behind that of its children', () => {
  let running: RunningController;
  let late: (() => void)[];

  beforeEach(async () => {
    running = new RunningController(HelloApp);
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
    late = [];
    const { objects } = running;
    for (const hear of ['applyChange', 'applyDeletion'] as const) {
      const heard = objects[hear].bind(objects);
      objects[hear] = (object: KubeObject): void => void late.push(() => heard(object));
    }
    running.server.takeRequests();
    running.server.remove(HelloApp.type, ref('web'), 'Orphan');
  });

  afterEach(async () => {
    expect(await running.stop()).toEqual({ abandoned: [] });
  });

  it('leaves its children behind, unclaimed and unwritten', async () => {
    const { uid } = running.live(Deployment, 'web').metadata;
    running.server.collectGarbage();
    await running.settle();
    await running.clock.advance(5);
    await running.settle();
    for (const tell of late) tell();
    await running.clock.advance(1_000_000);
    await running.settle();
    running.server.collectGarbage();
    expect(running.server.writes).toEqual([]);
    expect(running.live(Deployment, 'web').metadata).toMatchObject({ uid, ownerReferences: [] });
    expect(running.complaints()).toEqual([]);
  });

  it('costs one look a try, and no complaint, until the event comes', async () => {
    running.server.collectGarbage();
    await running.settle();
    await running.clock.advance(1_000);
    await running.settle();
    const tries = running.results.slice(1);
    expect(tries.length).toBeGreaterThan(1);
    expect(new Set(tries)).toEqual(new Set(['requeue']));
    expect(running.server.requests.map(({ verb, type }) => `${verb} ${type.kind}`)).toEqual(
      tries.map(() => 'LIST HelloApp'),
    );
  });
});
