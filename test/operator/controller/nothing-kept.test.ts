import { owned } from '../../../constructs/kube/resource-type';
import { Foo, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import { ref } from '../reconcile/harness';
import { RunningController } from './running-controller';

interface Life {
  readonly kind: AnyKind;
  readonly spec: (name: string) => object;
  /** After it children are applied, and others take their place. */
  readonly change: (name: string) => object;
}

const lives: readonly Life[] = [
  { kind: HelloApp, spec: () => ({ image: 'a' }), change: () => ({ image: 'b' }) },
  {
    kind: Foo,
    spec: (name) => ({ deploymentName: `${name}-old`, replicas: 1 }),
    change: (name) => ({ deploymentName: `${name}-new`, replicas: 2 }),
  },
  {
    kind: MicroServiceDeploy,
    spec: (name) => ({ msName: 'shop', fullName: `${name}-old`, version: '1', path: 'v1', image: 'a' }),
    change: (name) => ({ fullName: `${name}-new`, image: 'b' }),
  },
];

describe.each(lives)('of objects of $kind.kind that came, changed and went', ({ kind, spec, change }) => {
  let running: RunningController;
  const names = ['a', 'b', 'c'];

  beforeEach(async () => {
    running = new RunningController(kind);
    running.start();
    for (const name of names) await running.add(name, spec(name));
    await running.settle();
    for (const name of names) running.respec(name, change(name));
    await running.settle();
  });

  afterEach(async () => {
    expect(running.complaints()).toEqual([]);
    expect(await running.stop()).toEqual({ abandoned: [] });
  });

  it('nothing is remembered', async () => {
    expect(running.controller.trackedCount).toBeGreaterThan(names.length);
    expect(running.context.projection.size).toBeGreaterThanOrEqual(names.length);
    for (const name of names) running.server.remove(kind.type, ref(name));
    for (let i = 0; i < 3; i++) {
      running.server.collectGarbage();
      await running.settle();
    }
    expect(running.objects.list()).toEqual([]);
    expect([running.controller.trackedCount, running.context.projection.size]).toEqual([0, 0]);
  });

  it('what is remembered of one stays with the others', async () => {
    const before = running.controller.trackedCount;
    running.server.remove(kind.type, ref('a'));
    for (let i = 0; i < 3; i++) {
      running.server.collectGarbage();
      await running.settle();
    }
    expect(running.controller.trackedCount).toBeGreaterThan(0);
    expect(running.controller.trackedCount).toBeLessThan(before);
  });
});

describe('of an object that goes in the middle of its reconcile', () => {
  it.each(['before', 'after'] as const)('nothing is remembered, its end told %s the answer', async (delivery) => {
    const running = new RunningController(Foo);
    running.server.eventDelivery = delivery;
    running.start();
    running.server[delivery] = ({ verb, type }) => {
      if (verb !== 'POST' || type !== owned.Deployment) return;
      running.server[delivery] = () => undefined;
      running.server.remove(Foo.type, ref('a'));
    };
    await running.add('a', { deploymentName: 'a', replicas: 1 });
    await running.settle();
    running.server.collectGarbage();
    await running.settle();
    await running.clock.advance(60_000);
    await running.settle();
    expect(running.server.requests.map(({ verb }) => verb)).toContain('POST');
    expect([running.objects.list(), running.cacheOf(owned.Deployment).list()]).toEqual([[], []]);
    expect([running.controller.trackedCount, running.context.projection.size]).toEqual([0, 0]);
    expect(await running.stop()).toEqual({ abandoned: [] });
  });
});
