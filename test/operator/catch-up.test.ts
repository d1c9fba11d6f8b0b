import { catchUp } from '../../operator/informers';
import { seed, withReflector, type Harness } from './informer/reflector-harness';
import { CONFIG_MAPS } from './support/fake-cluster';
import { status } from './support/fake-api-server';

function run({ client, reflector }: Harness, waitMs: number): Promise<boolean> {
  return catchUp({ client, type: CONFIG_MAPS, reflector, signal: new AbortController().signal, waitMs });
}

describe('catchUp', () => {
  it('takes no list when nothing has happened since the last', async () => {
    await withReflector(
      async (harness) => {
        await harness.reflector.synced();
        expect(await run(harness, 0)).toBe(false);
        expect(harness.reflector.state().lists).toBe(1);
        expect(harness.cluster.lists.at(-1)?.query.get('limit')).toBe('1');
      },
      { prepare: seed(3) },
    );
  });

  it('takes none either when the watch comes to where the server is', async () => {
    await withReflector(async (harness) => {
      await harness.reflector.synced();
      harness.cluster.hold();
      harness.cluster.put('late');
      const caughtUp = run(harness, 5_000);
      setTimeout(() => harness.cluster.release(), 50);
      expect(await caughtUp).toBe(false);
      expect(harness.cache.size).toBe(1);
    });
  });

  it('lists anew when the watch says nothing, whether anything was missed or not', async () => {
    await withReflector(async (harness) => {
      await harness.reflector.synced();
      harness.cluster.silence();
      harness.cluster.put('unheard');
      expect(await run(harness, 50)).toBe(true);
      expect(harness.cache.get({ name: 'unheard', namespace: 'default' })).toBeDefined();
      harness.cluster.tick();
      expect(await run(harness, 50)).toBe(true);
      expect(harness.reflector.state().lists).toBe(3);
    });
  });

  it('lists anew when the server is behind what the cache knew', async () => {
    await withReflector(
      async (harness) => {
        await harness.reflector.synced();
        harness.cluster.silence();
        harness.cluster.restore(50);
        expect(await run(harness, 5_000)).toBe(true);
      },
      { prepare: seed(3) },
    );
  });

  it('lists anew when the server does not say where it is', async () => {
    await withReflector(async (harness) => {
      await harness.reflector.synced();
      harness.cluster.server.next((_request, response) => status(response, 403, 'Forbidden'));
      expect(await run(harness, 5_000)).toBe(true);
    });
  });

  it('ends with the signal', async () => {
    await withReflector(async ({ client, reflector, cluster }) => {
      await reflector.synced();
      cluster.silence();
      cluster.put('unheard');
      const abort = new AbortController();
      const caughtUp = catchUp({ client, type: CONFIG_MAPS, reflector, signal: abort.signal, waitMs: 60_000 });
      setTimeout(() => abort.abort(), 50);
      await expect(caughtUp).rejects.toMatchObject({ name: 'AbortError' });
    });
  });
});
