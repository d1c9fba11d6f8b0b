import { owned, typeKey } from '../../../constructs/kube/resource-type';
import { DemoMicroService, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { ref, rolledOut } from '../reconcile/harness';
import { RunningController } from './running-controller';

const { ConfigMap, Deployment, HorizontalPodAutoscaler, Service, ServiceAccount } = owned;
const shop = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };

/** The type is gone, or back; the controller hears of it. */
function set(running: RunningController, type: typeof Deployment | typeof ConfigMap, isMissing: boolean): void {
  if (isMissing) running.missing.add(typeKey(type));
  else running.missing.delete(typeKey(type));
  running.controller.onTypeChange(type);
}

describe('a child type that is not installed', () => {
  let running: RunningController;

  afterEach(() => running.stop());

  it('is named by the objects that have a child of it, whose other children are made; then they go on', async () => {
    running = new RunningController(MicroServiceDeploy);
    set(running, Deployment, true);
    running.start();
    await running.add('m', shop);
    await running.settle();
    expect(running.conditions('m')).toEqual(['Ready=False ErrTypeMissing', 'Reconciling=True ErrTypeMissing']);
    expect(running.message('m')).toBe(
      'Deployment "shop-1": the server has no type apps/v1/Deployment; install it (the CRD deployments.apps), ' +
        'and this object goes on by itself',
    );
    expect(running.events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'ErrTypeMissing' }));
    for (const type of [ConfigMap, Service]) expect(running.live(type, 'shop-1')).toBeDefined();
    expect(running.server.peek(Deployment, ref('shop-1'))).toBeUndefined();
    set(running, Deployment, false);
    await running.settle();
    running.server.setStatus(Deployment, ref('shop-1'), rolledOut(1));
    await running.settle();
    expect(running.conditions('m')).toEqual(['Ready=True Ready']);
  });

  it('does not concern an object without a child of it', async () => {
    running = new RunningController(MicroServiceDeploy);
    set(running, HorizontalPodAutoscaler, true);
    running.start();
    await running.add('m', shop);
    await running.settle();
    running.server.setStatus(Deployment, ref('shop-1'), rolledOut(1));
    await running.settle();
    expect(running.conditions('m')).toEqual(['Ready=True Ready']);
  });

  it('is named where it is that of a shared child, and holds back what uses that', async () => {
    running = new RunningController(MicroServiceDeploy);
    set(running, ServiceAccount, true);
    running.start();
    await running.add('m', shop);
    await running.settle();
    expect(running.conditions('m')[0]).toBe('Ready=False ErrTypeMissing');
    expect(running.server.peek(Deployment, ref('shop-1'))).toBeUndefined();
    set(running, ServiceAccount, false);
    await running.settle();
    expect(running.live(Deployment, 'shop-1')).toBeDefined();
  });

  it('shows when it is removed later, though the cache still has its objects, and is made up for', async () => {
    running = new RunningController(HelloApp);
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
    running.server.setStatus(Deployment, ref('web'), rolledOut(1));
    await running.settle();
    expect(running.conditions('web')).toEqual(['Ready=True Ready']);
    set(running, Deployment, true);
    await running.settle();
    expect(running.conditions('web')[0]).toBe('Ready=False ErrTypeMissing');
    expect(running.object('web').status).toMatchObject({ readyReplicas: 0 });
    set(running, Deployment, false);
    await running.settle();
    expect(running.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('does not keep an object with a finalizer from going', async () => {
    running = new RunningController(DemoMicroService);
    running.start();
    await running.add('dms', { image: 'i' });
    await running.settle();
    set(running, Deployment, true);
    running.server.remove(DemoMicroService.type, ref('dms'));
    await running.settle();
    expect(running.server.peek(DemoMicroService.type, ref('dms'))).toBeUndefined();
  });
});

describe("a kind's own type that is removed", () => {
  it('ends the work on its objects, which are gone, and is taken up again', async () => {
    const running = new RunningController(HelloApp);
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
    running.missing.add(typeKey(HelloApp.type));
    running.server.remove(Deployment, ref('web'));
    await running.settle();
    expect(running.server.peek(Deployment, ref('web'))).toBeUndefined();
    running.missing.clear();
    running.controller.onTypeChange(HelloApp.type);
    await running.settle();
    expect(running.live(Deployment, 'web')).toBeDefined();
    await running.stop();
  });
});
