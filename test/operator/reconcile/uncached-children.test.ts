import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import { TransportError } from '../../../operator/client/errors';
import { RunningController } from '../controller/running-controller';
import { Harness, ref } from './harness';

const { Deployment, Service } = owned;
const shop = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };

const stranger: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: ref('web'),
  spec: {
    selector: { matchLabels: { x: 'y' } },
    template: { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
};

/** The write is stored, and its answer lost. */
function loseAnswer(harness: Harness, verb: string, kind: string): void {
  harness.server.after = (request) => {
    if (request.verb !== verb || request.type.kind !== kind) return;
    harness.server.after = () => undefined;
    throw new TransportError('cut', verb);
  };
}

describe('a child that stands and that no event has told of', () => {
  it('is waited for, and looked at again should its event never come', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'i' });
    harness.server.eventDelivery = 'held';
    loseAnswer(harness, 'POST', 'Deployment');
    await expect(harness.reconcile('web')).rejects.toBeInstanceOf(TransportError);
    const { next } = await harness.reconcile('web');
    expect(next).toMatchObject({
      action: 'wait',
      requeueAfterMs: 10_000,
      awaited: [{ type: Deployment, ref: ref('web') }],
    });
    expect(harness.conditions('web')).toEqual(['Ready=False Waiting', 'Reconciling=True Waiting']);
    expect(harness.message('web')).toBe('Deployment "web": it has been written, and no event has told of it yet');
    harness.server.deliverEvents();
    expect((await harness.reconcile('web')).next).not.toHaveProperty('requeueAfterMs');
  });

  it('is waited for under a shared key too', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('m', shop);
    harness.server.eventDelivery = 'held';
    loseAnswer(harness, 'POST', 'Service');
    await expect(harness.reconcileShared('shop')).rejects.toBeInstanceOf(TransportError);
    const { result } = await harness.reconcileShared('shop');
    expect(result).toMatchObject({
      state: { state: 'failed', readiness: { state: 'progressing', reason: 'Waiting' } },
      requeueAfterMs: 10_000,
      awaited: [{ type: Service }],
    });
    harness.server.deliverEvents();
    expect((await harness.reconcileShared('shop')).result.state).toEqual({ state: 'applied' });
  });

  it('makes the object not ready when it goes while its siblings are looked at', async () => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    harness.respec('web', { image: 'b' });
    harness.server.after = ({ verb, type }) => {
      if (verb !== 'APPLY' || type.kind !== 'Deployment') return;
      harness.server.after = () => undefined;
      queueMicrotask(() => harness.server.remove(Deployment, ref('web')));
    };
    await harness.reconcile('web');
    expect(harness.message('web')).toBe('Deployment "web": no event has told of it yet');
    expect(harness.conditions('web')[0]).toBe('Ready=False Progressing');
  });
});

describe("what is in a child's way and not in the cache", () => {
  it.each([
    ['an object that is not ours', () => undefined],
    [
      'an object that is gone when it is looked at',
      (harness: Harness) => {
        harness.server.before = ({ verb, type }) => {
          if (verb === 'GET' && type === Deployment) harness.server.remove(Deployment, ref('web'));
        };
      },
    ],
  ])('is looked at again after some time: %s', async (_what, prepare) => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'i' });
    harness.server.eventDelivery = 'held';
    await harness.server.create(Deployment, stranger, { fieldManager: 'kubectl' });
    prepare(harness);
    expect((await harness.reconcile('web')).next).toMatchObject({ action: 'wait', requeueAfterMs: 10_000 });
  });

  it('does not block for ever if it comes and goes while its watch is down', async () => {
    const running = new RunningController(HelloApp);
    running.start();
    const cache = running.cacheOf(Deployment);
    const change = cache.applyChange.bind(cache);
    const deletion = cache.applyDeletion.bind(cache);
    cache.applyChange = () => undefined;
    cache.applyDeletion = () => undefined;
    await running.server.create(Deployment, stranger, { fieldManager: 'kubectl' });
    await running.add('web', { image: 'i' });
    await running.settle();
    expect(running.conditions('web')).toContain('Stalled=True ErrResourceExists');
    running.server.remove(Deployment, ref('web'));
    // 410: a new list, without it.
    cache.applyChange = change;
    cache.applyDeletion = deletion;
    cache.replace([], running.server.version);
    await running.clock.advance(10_000);
    await running.settle();
    expect(running.live(Deployment, 'web').metadata.ownerReferences).toHaveLength(1);
    await running.stop();
  });
});
