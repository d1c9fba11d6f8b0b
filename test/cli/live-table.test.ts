import { LiveTable, waitUntilReady } from '../../cli/object-watcher';
import { HelloApp } from '../../constructs/kinds';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, WatchOptions } from '../../operator/client/api-client';

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
    expect(() => shown.rows()).toThrow('nothing is watched yet');
  },
);

test('a watch that waits ends when the table is stopped', async () => {
  const shown = table();
  const watching = shown.watch([HelloApp], new AbortController().signal);
  const ended = expect(watching).rejects.toThrow('stopped');
  await shown.stop();
  await ended;
});

test('who waits for objects sees those of the kinds that are shown later, too', async () => {
  const send: ((event: object) => void)[] = [];
  /** An API server whose watches begin empty. */
  async function* watch(type: ResourceType, { signal, onOpen }: WatchOptions): AsyncGenerator<object> {
    const events: object[] = [];
    let wake = (): void => undefined;
    send.push((event) => {
      events.push(event);
      wake();
    });
    signal.addEventListener('abort', () => wake());
    onOpen?.();
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const { apiVersion, kind } = type;
    yield { type: 'BOOKMARK', object: { apiVersion, kind, metadata: { name: '', resourceVersion: '5', annotations } } };
    for (;;) {
      signal.throwIfAborted();
      const event = events.shift();
      if (event === undefined) await new Promise<void>((resolve) => (wake = resolve));
      else yield event;
    }
  }
  const Plain = { ...HelloApp, owns: [], shared: [], formerlyOwned: [] } as unknown as typeof HelloApp;
  const signal = new AbortController().signal;
  const shown = new LiveTable({ watch } as unknown as ApiClient, { show: () => undefined });
  const { apiVersion, kind } = HelloApp;
  const metadata = { namespace: 'n', name: 'a' };
  await shown.watch([Plain], signal);
  const ready = waitUntilReady(shown, [{ apiVersion, kind, metadata }], { timeoutSeconds: 10, signal });
  await shown.watch([Plain], signal);
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }];
  const object = {
    apiVersion,
    kind,
    metadata: { ...metadata, uid: 'u', resourceVersion: '7' },
    status: { conditions },
  };
  send.at(-1)?.({ type: 'ADDED', object });
  await ready;
  expect(shown.rows()).toMatchObject([{ object: 'n/a', isReady: true }]);
  await shown.stop();
});
