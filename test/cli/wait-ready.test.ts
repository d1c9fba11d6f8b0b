import { InterruptedError } from '../../cli/errors';
import { awaitedRows, waitUntilReady, type Row, type RowSource } from '../../cli/object-watcher';
import { helloApp, notYet, row } from './objects';

class FakeBoard implements RowSource {
  readonly listeners = new Set<(rows: readonly Row[]) => void>();
  constructor(private current: readonly Row[]) {}
  rows(): readonly Row[] {
    return this.current;
  }
  onChange(listener: (rows: readonly Row[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  set(rows: readonly Row[]): void {
    this.current = rows;
    for (const listener of this.listeners) listener(rows);
  }
}

const never = new AbortController().signal;
const other = row({ kind: 'Foo', object: 'team/web', isReady: false });

afterEach(() => jest.useRealTimers());

test('resolves at once when everything is Ready already; what is not waited for does not count', async () => {
  const board = new FakeBoard([row(), other]);
  await waitUntilReady(board, [helloApp()], { timeoutSeconds: 1, signal: never });
  expect(board.listeners.size).toBe(0);
});

test('waits for the change that makes the last object Ready', async () => {
  const board = new FakeBoard([]);
  const ready = waitUntilReady(board, [helloApp()], { timeoutSeconds: 60, signal: never });
  board.set([notYet]);
  expect(board.listeners.size).toBe(1);
  board.set([row()]);
  await ready;
  expect(board.listeners.size).toBe(0);
});

test('at the deadline, says of each object why it is not Ready', async () => {
  jest.useFakeTimers();
  const board = new FakeBoard([notYet]);
  const both = [helloApp(), helloApp(undefined, { name: 'api' })];
  const late = waitUntilReady(board, both, { timeoutSeconds: 7, signal: never });
  const checked = expect(late).rejects.toThrow(
    [
      '2 of 2 objects are not Ready after 7 s:',
      '  HelloApp team/web: Ready=False (Progressing): Deployment "web": 0 of 1 replicas ready',
      '  HelloApp team/api: Ready=- (Missing): It was applied and is not there: somebody deleted it.',
    ].join('\n'),
  );
  await jest.advanceTimersByTimeAsync(7_000);
  await checked;
  expect(board.listeners.size).toBe(0);
});

test.each([true, false])('an interruption ends the wait (before it began: %s)', async (before) => {
  const controller = new AbortController();
  if (before) controller.abort(new InterruptedError('SIGINT'));
  const board = new FakeBoard([]);
  const wait = waitUntilReady(board, [helloApp()], { timeoutSeconds: 60, signal: controller.signal });
  controller.abort(new InterruptedError('SIGINT'));
  await expect(wait).rejects.toThrow('stopped by SIGINT');
  expect(board.listeners.size).toBe(0);
});

test('an object of another namespace or kind is not taken for it', () => {
  expect(awaitedRows([helloApp()], [other, row({ object: 'other/web' })])).toMatchObject([{ reason: 'Missing' }]);
});
