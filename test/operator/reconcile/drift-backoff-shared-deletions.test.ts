import { MicroServiceDeploy } from '../../../constructs/kinds';
import { ref, type Harness } from './harness';
import { Service, SharedShop } from './shared-shop';

const CREATION = 'POST Service shop (kindred)';
const AT_ONCE = 5;
const reason =
  'Service "shop": something else deletes it as often as it is created; ' +
  'it is created again 1 s after the last time; have one of the two leave it alone';

describe('a shared child that somebody else deletes again and again', () => {
  let shop: SharedShop;
  let harness: Harness;

  beforeEach(async () => {
    shop = await SharedShop.open();
    harness = shop.harness;
  });

  function remove(): void {
    if (harness.server.peek(Service, ref('shop')) !== undefined) harness.server.remove(Service, ref('shop'));
  }

  /** How often it is created while somebody does something again and again. */
  async function creationsOf(act: (time: number) => unknown): Promise<number> {
    let creations = 0;
    for (let time = 0; time < 20; time++) {
      await act(time);
      creations += (await shop.reconcile()).writes.filter((write) => write === CREATION).length;
    }
    return creations;
  }

  it('is created again five times and then left alone, with the delay for the next try', async () => {
    expect(await creationsOf(remove)).toBe(AT_ONCE);
    const { result, writes } = await shop.reconcile();
    expect(writes).toEqual([]);
    expect(result).toEqual({
      state: { state: 'failed', readiness: { state: 'failing', reason: 'ErrContested', message: reason } },
      retry: false,
      requeueAfterMs: 1_000,
      awaited: [],
    });
    expect(new Set(harness.events.map(({ regarding, message }) => `${regarding}: ${message}`))).toEqual(
      new Set([`a: ${reason}`, `b: ${reason}`]),
    );
  });

  it('recovers when the other has stopped', async () => {
    await creationsOf(remove);
    shop.now += 1_000;
    const { result, writes } = await shop.reconcile();
    expect(writes).toEqual([CREATION]);
    expect(result).toEqual({ state: { state: 'applied' }, retry: false, awaited: [] });
    expect((await shop.reconcile()).writes).toEqual([]);
  });

  it('is no contest when those who share it go and come again', async () => {
    const again = async (): Promise<void> => {
      for (const name of ['a', 'b']) harness.server.remove(MicroServiceDeploy.type, ref(name));
      harness.server.collectGarbage();
      await shop.addBoth();
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
