import { owned } from '../../../constructs/core/owned';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { Contests } from '../../../operator/src/reconcile/contests';
import { reconcileShared } from '../../../operator/src/reconcile/reconcile-shared';
import type { SharedResult } from '../../../operator/src/reconcile/reconcile-shared';
import { Harness, NAMESPACE, ref } from './harness';

const { Service } = owned;
const CREATION = 'POST Service shop (kindred)';
const AT_ONCE = 5;
const spec = { msName: 'shop', version: '1', path: 'v1', image: 'i' };
const reason =
  'Service "shop": something else deletes it as often as it is created; ' +
  'it is created again 1 s after the last time; have one of the two leave it alone';

describe('a shared child that somebody else deletes again and again', () => {
  let harness: Harness;
  let now = 0;
  let contests: Contests;

  beforeEach(async () => {
    harness = new Harness(MicroServiceDeploy);
    now = 0;
    contests = new Contests(() => now);
    await harness.add('a', { ...spec, fullName: 'shop-1' });
    await harness.add('b', { ...spec, fullName: 'shop-2' });
    await reconcile();
  });

  async function reconcile(): Promise<{ readonly result: SharedResult; readonly writes: readonly string[] }> {
    harness.server.take();
    const objects = harness.objects
      .list()
      .map(({ object }) => object)
      .filter((object) => (object.spec as { msName: string }).msName === 'shop');
    const target = { group: 'service', namespace: NAMESPACE, key: 'shop', objects };
    const result = await reconcileShared({ ...harness.context, contests }, target);
    return { result, writes: harness.server.writes };
  }

  function remove(): void {
    if (harness.server.peek(Service, ref('shop')) !== undefined) harness.server.remove(Service, ref('shop'));
  }

  /** How often it is created while somebody does something again and again. */
  async function creationsOf(act: (time: number) => unknown): Promise<number> {
    let creations = 0;
    for (let time = 0; time < 20; time++) {
      await act(time);
      creations += (await reconcile()).writes.filter((write) => write === CREATION).length;
    }
    return creations;
  }

  it('is created again five times and then left alone, with the delay for the next try', async () => {
    expect(await creationsOf(remove)).toBe(AT_ONCE);
    const { result, writes } = await reconcile();
    expect(writes).toEqual([]);
    expect(result).toEqual({
      state: { state: 'failed', verdict: { state: 'failing', reason: 'ErrContested', message: reason } },
      retry: false,
      afterMs: 1_000,
      awaited: [],
    });
    expect(new Set(harness.events.map(({ regarding, message }) => `${regarding}: ${message}`))).toEqual(
      new Set([`a: ${reason}`, `b: ${reason}`]),
    );
  });

  it('recovers when the other has stopped', async () => {
    await creationsOf(remove);
    now += 1_000;
    const { result, writes } = await reconcile();
    expect(writes).toEqual([CREATION]);
    expect(result).toEqual({ state: { state: 'applied' }, retry: false, awaited: [] });
    expect((await reconcile()).writes).toEqual([]);
  });

  it('is no contest when those who share it go and come again', async () => {
    const again = async (): Promise<void> => {
      for (const name of ['a', 'b']) harness.server.remove(MicroServiceDeploy.type, ref(name));
      harness.server.collect();
      await harness.add('a', { ...spec, fullName: 'shop-1' });
      await harness.add('b', { ...spec, fullName: 'shop-2' });
    };
    expect(await creationsOf(again)).toBe(20);
    expect(harness.events).toEqual([]);
  });

  it('is no contest when those who share it turn away and come back', async () => {
    const turn = (time: number): void => {
      for (const name of ['a', 'b']) harness.respec(name, { msName: time % 2 === 0 ? 'elsewhere' : 'shop' });
    };
    expect(await creationsOf(turn)).toBe(10);
    expect(harness.events).toEqual([]);
  });
});
