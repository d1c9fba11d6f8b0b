import { ref, type Harness } from './harness';
import { Service, SharedShop, shopSpec } from './shared-shop';

const reason =
  'Service "shop": spec.selector.app is changed by "mesh" as often as it is corrected; have one of the two leave it alone';

describe('a shared child that another manager changes back again and again', () => {
  let shop: SharedShop;
  let harness: Harness;

  beforeEach(async () => {
    shop = await SharedShop.open();
    harness = shop.harness;
  });

  async function meddle(): Promise<void> {
    const body = { spec: { selector: { app: 'elsewhere' } } };
    await harness.server.patch(Service, ref('shop'), body, { type: 'merge', fieldManager: 'mesh' });
  }

  async function untilContested(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await meddle();
      const { result } = await shop.reconcile();
      expect(result.state?.state).toBe(i < 2 ? 'applied' : 'failed');
    }
    harness.events.length = 0;
    await meddle();
  }

  it('is corrected five times and then left alone, with the delay for the next try', async () => {
    await untilContested();
    const { result, writes } = await shop.reconcile();
    expect(writes).toEqual([]);
    expect(result).toEqual({
      state: { state: 'failed', readiness: { state: 'failing', reason: 'ErrContested', message: reason } },
      retry: false,
      requeueAfterMs: 1_000,
      awaited: [],
    });
  });

  it('tells every object that shares it, by an event and in Ready', async () => {
    await untilContested();
    const { result } = await shop.reconcile();
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
    await shop.reconcile();
    shop.now += 1_000;
    const { result, writes } = await shop.reconcile();
    expect(writes).toEqual(['APPLY Service shop (kindred)']);
    expect(result).toMatchObject({ state: { state: 'failed' }, retry: false, requeueAfterMs: 60_000 });
    shop.now += 60_000;
    const after = await shop.reconcile();
    expect(after.writes).toEqual([]);
    expect(after.result).toMatchObject({ state: { state: 'applied' }, retry: false });
    expect(after.result.requeueAfterMs).toBeUndefined();
  });

  it('is no contest when an object leaves it and comes back again and again', async () => {
    for (let i = 0; i < 8; i++) {
      harness.respec('b', { msName: i % 2 === 0 ? 'elsewhere' : 'shop' });
      const { result } = await shop.reconcile();
      if (i < 5) expect(result.state).toEqual({ state: 'applied' });
      else expect(JSON.stringify(result.state)).not.toContain('ErrContested');
    }
  });

  it('is no contest when ten objects come to share it one after the other', async () => {
    for (let i = 0; i < 10; i++) {
      await harness.add(`more-${String(i)}`, { ...shopSpec, fullName: `more-${String(i)}` });
      expect((await shop.reconcile()).result.state).toEqual({ state: 'applied' });
    }
  });
});
