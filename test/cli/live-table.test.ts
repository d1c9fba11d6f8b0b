import { LiveTable } from '../../cli/object-watcher';
import { HelloApp } from '../../constructs/kinds';
import type { ApiClient } from '../../operator/client/api-client';

/** An API server that answers nothing, as one that cannot convert an object never gives a list. */
const silent = { list: () => new Promise<never>(() => undefined) } as Partial<ApiClient> as ApiClient;

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);
beforeEach(() => void process.on('unhandledRejection', onUnhandled));
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
});

const table = (): LiveTable => new LiveTable(silent, { show: () => undefined });

test.each([0, 10])(
  'a watch that is aborted after %d ms rejects with the reason, and leaves the table before',
  async (ms) => {
    const stopping = new AbortController();
    const reason = new Error('saved again');
    if (ms === 0) stopping.abort(reason);
    else setTimeout(() => stopping.abort(reason), ms);
    const shown = table();
    await expect(shown.watch([HelloApp], stopping.signal)).rejects.toBe(reason);
    expect(() => shown.watcher).toThrow('nothing is watched yet');
  },
);

test('a watch that waits ends when the table is stopped', async () => {
  const shown = table();
  const watching = shown.watch([HelloApp], new AbortController().signal);
  const ended = expect(watching).rejects.toThrow('stopped');
  await shown.stop();
  await ended;
});
