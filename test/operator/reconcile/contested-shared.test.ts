import { owned } from '../../../constructs/core/owned';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { Contests } from '../../../operator/src/reconcile/contests';
import { reconcileShared } from '../../../operator/src/reconcile/reconcile-shared';
import type { SharedResult } from '../../../operator/src/reconcile/reconcile-shared';
import { Harness, NAMESPACE, ref } from './harness';

const { Service } = owned;
const spec = { msName: 'shop', version: '1', path: 'v1', image: 'i' };
const reason =
  'Service "shop": spec.selector.app is changed by "mesh" as often as it is corrected; have one of the two leave it alone';

describe('a shared child that another manager changes back again and again', () => {
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
    const objects = harness.objects.list().map(({ object }) => object);
    const target = { group: 'service', namespace: NAMESPACE, key: 'shop', objects };
    const result = await reconcileShared({ ...harness.context, contests }, target);
    return { result, writes: harness.server.writes };
  }

  async function meddle(): Promise<void> {
    const body = { spec: { selector: { app: 'elsewhere' } } };
    await harness.server.patch(Service, ref('shop'), body, { type: 'merge', fieldManager: 'mesh' });
  }

  async function untilContested(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await meddle();
      expect((await reconcile()).result.state).toEqual({ state: 'applied' });
    }
    await meddle();
  }

  it('is corrected five times and then left alone, with the delay for the next try', async () => {
    await untilContested();
    const { result, writes } = await reconcile();
    expect(writes).toEqual([]);
    expect(result).toEqual({
      state: { state: 'failed', verdict: { state: 'failing', reason: 'ErrContested', message: reason } },
      retry: false,
      afterMs: 1_000,
      awaited: [],
    });
  });

  it('tells every object that shares it, by an event and in Ready', async () => {
    await untilContested();
    const { result } = await reconcile();
    expect(harness.events).toEqual(
      ['a', 'b'].map((regarding) => ({
        regarding,
        type: 'Warning',
        action: 'Apply',
        reason: 'ErrContested',
        message: reason,
      })),
    );
    harness.sharedState = () => result.state;
    await harness.reconcile('a');
    expect(harness.conditions('a')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    expect(harness.message('a')).toBe(reason);
  });

  it('recovers when the other has stopped', async () => {
    await untilContested();
    await reconcile();
    now += 1_000;
    const { result, writes } = await reconcile();
    expect(writes).toEqual(['APPLY Service shop (kindred)']);
    expect(result).toMatchObject({ state: { state: 'applied' }, retry: false });
    expect(result.afterMs).toBeUndefined();
    expect((await reconcile()).writes).toEqual([]);
  });

  it('is no contest when ten objects come to share it one after the other', async () => {
    for (let i = 0; i < 10; i++) {
      await harness.add(`more-${String(i)}`, { ...spec, fullName: `more-${String(i)}` });
      expect((await reconcile()).result.state).toEqual({ state: 'applied' });
    }
  });
});
