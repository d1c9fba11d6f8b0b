import fc from 'fast-check';
import { runWorkers } from '../../../operator/workqueue/run-workers';
import { WorkQueue } from '../../../operator/workqueue/work-queue';
import { ManualClock, settle } from '../support/manual-clock';

function gate(): { promise: Promise<void>; open: () => void } {
  let open!: () => void;
  const promise = new Promise<void>((resolve) => (open = resolve));
  return { promise, open };
}

/** Runs that go on until their gates are opened, and the keys in the order in which they began. */
function held() {
  const gates = new Map<string, () => void>();
  const started: string[] = [];
  const process = async (key: string): Promise<void> => {
    started.push(key);
    const { promise, open } = gate();
    gates.set(key, open);
    await promise;
  };
  return { started, gates, process };
}

function unexpected(key: string, error: unknown): void {
  throw new Error(`unexpected failure of ${key}`, { cause: error });
}

describe('runWorkers', () => {
  let clock: ManualClock;
  let queue: WorkQueue<string>;
  let abort: AbortController;

  beforeEach(() => {
    clock = new ManualClock();
    queue = new WorkQueue({ clock, backoff: { random: () => 0 } });
    abort = new AbortController();
  });

  it('runs what was added before and after it started, no more at once than asked', async () => {
    const { started, gates, process } = held();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    const ended = runWorkers(queue, {
      concurrency: 2,
      signal: abort.signal,
      onError: unexpected,
      process,
    });
    await settle();
    expect(started).toEqual(['a', 'b']);
    gates.get('b')!();
    await settle();
    expect(started).toEqual(['a', 'b', 'c']);
    queue.add('d');
    await settle();
    expect(queue.running).toEqual(['a', 'c']);
    gates.get('a')!();
    await settle();
    expect(started).toEqual(['a', 'b', 'c', 'd']);
    for (const open of gates.values()) open();
    abort.abort();
    await expect(ended).resolves.toEqual({ abandoned: [] });
  });

  it('gives half of its workers to a backlog, the others to what users change', async () => {
    const { started, gates, process } = held();
    for (const key of ['r1', 'r2', 'r3', 'r4']) queue.add(key, 'resync');
    const ended = runWorkers(queue, {
      concurrency: 3,
      signal: abort.signal,
      onError: unexpected,
      process,
    });
    await settle();
    expect(started).toEqual(['r1', 'r2']);
    for (const key of ['u1', 'u2']) queue.add(key, 'user');
    await settle();
    expect(started).toEqual(['r1', 'r2', 'u1']);
    gates.get('r1')!();
    await settle();
    expect(started).toEqual(['r1', 'r2', 'u1', 'u2']);
    gates.get('u1')!();
    await settle();
    expect(started).toEqual(['r1', 'r2', 'u1', 'u2', 'r3']);
    abort.abort();
    for (const open of gates.values()) open();
    await expect(ended).resolves.toEqual({ abandoned: [] });
  });

  it('gives a free worker to a key of the backlog that a user changes', async () => {
    const { started, process } = held();
    for (const key of ['r1', 'r2', 'r3']) queue.add(key, 'resync');
    void runWorkers(queue, { concurrency: 4, signal: abort.signal, onError: unexpected, process });
    await settle();
    expect(started).toEqual(['r1', 'r2']);
    queue.add('r3', 'user');
    await settle();
    expect(started).toEqual(['r1', 'r2', 'r3']);
    abort.abort();
  });

  it('retries with backoff what rejects or throws, and tells', async () => {
    const failures: string[] = [];
    let runs = 0;
    const ended = runWorkers(queue, {
      signal: abort.signal,
      onError: (key, error) => failures.push(`${key}: ${String(error)}`),
      process: () => {
        if (++runs === 1) throw new Error('at once');
        return runs === 2 ? Promise.reject(new Error('later')) : Promise.resolve();
      },
    });
    queue.add('a');
    await settle();
    expect(runs).toBe(1);
    await clock.advance(5);
    expect(runs).toBe(2);
    await clock.advance(9);
    expect(runs).toBe(2);
    await clock.advance(1);
    expect(runs).toBe(3);
    expect(failures).toEqual(['a: Error: at once', 'a: Error: later']);
    abort.abort();
    await ended;
  });

  it('on shutdown takes no more keys and waits for those in flight', async () => {
    const held = gate();
    const started: string[] = [];
    const ended = runWorkers(queue, {
      concurrency: 1,
      signal: abort.signal,
      onError: unexpected,
      process: async (key) => {
        started.push(key);
        await held.promise;
      },
    });
    queue.add('a');
    queue.add('b');
    await settle();
    abort.abort();
    const watched = jest.fn();
    void ended.then(watched);
    await clock.advance(19_999);
    expect(watched).not.toHaveBeenCalled();
    held.open();
    await expect(ended).resolves.toEqual({ abandoned: [] });
    expect(started).toEqual(['a']);
    expect(clock.timerCount).toBe(0);
  });

  it('names what still runs when the drain deadline passed', async () => {
    const ended = runWorkers(queue, {
      signal: abort.signal,
      drainMs: 3000,
      onError: unexpected,
      process: (key) => (key === 'stuck' ? new Promise<void>(() => undefined) : Promise.resolve()),
    });
    queue.add('stuck');
    queue.add('fine');
    await settle();
    abort.abort();
    await clock.advance(3000);
    await expect(ended).resolves.toEqual({ abandoned: ['stuck'] });
  });

  it('ends at once when the signal was aborted before', async () => {
    queue.add('a');
    abort.abort();
    const process = jest.fn(() => Promise.resolve());
    await expect(runWorkers(queue, { signal: abort.signal, onError: unexpected, process })).resolves.toEqual({
      abandoned: [],
    });
    expect(process).not.toHaveBeenCalled();
  });

  it('gives the event loop a turn between keys that do no I/O', async () => {
    let turns = 0;
    let counting = true;
    const count = (): void => {
      turns++;
      if (counting) setImmediate(count);
    };
    for (let i = 0; i < 500; i++) queue.add(`k${i}`);
    let runs = 0;
    const ended = runWorkers(queue, {
      signal: abort.signal,
      onError: unexpected,
      process: () => {
        if (++runs === 500) abort.abort();
        return Promise.resolve();
      },
    });
    setImmediate(count);
    await ended;
    counting = false;
    expect(turns).toBeGreaterThanOrEqual(499);
  });

  it('refuses nonsense and a second set of workers', () => {
    const options = { signal: abort.signal, onError: unexpected, process: () => Promise.resolve() };
    expect(() => runWorkers(queue, { ...options, concurrency: 0 })).toThrow(/concurrency is 0/);
    void runWorkers(queue, options);
    expect(() => runWorkers(queue, options)).toThrow(/listener already/);
    abort.abort();
  });

  it('never runs a key twice at once and runs each after its last add, whatever the timing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('user' as const, 'resync' as const)), {
          minLength: 1,
          maxLength: 30,
        }),
        fc.integer({ min: 1, max: 3 }),
        async (scheduler, adds, concurrency) => {
          const raced = new WorkQueue<string>({ clock: new ManualClock() });
          const stop = new AbortController();
          const version = new Map<string, number>();
          const seen = new Map<string, number>();
          const running = new Set<string>();
          let most = 0;
          const ended = runWorkers(raced, {
            concurrency,
            signal: stop.signal,
            onError: unexpected,
            process: async (key) => {
              if (running.has(key)) throw new Error(`${key} runs twice`);
              running.add(key);
              most = Math.max(most, running.size);
              seen.set(key, version.get(key) ?? 0);
              await scheduler.schedule(Promise.resolve(), key);
              running.delete(key);
            },
          });
          for (const [key, priority] of adds) {
            void scheduler.schedule(Promise.resolve()).then(() => {
              version.set(key, (version.get(key) ?? 0) + 1);
              raced.add(key, priority);
            });
          }
          do {
            if (scheduler.count() > 0) await scheduler.waitNext(1);
            await settle(2);
          } while (scheduler.count() > 0 || raced.depth > 0 || raced.running.length > 0);
          expect(seen).toEqual(version);
          expect(most).toBeLessThanOrEqual(concurrency);
          stop.abort();
          await ended;
        },
      ),
      { numRuns: 60 },
    );
  });
});
