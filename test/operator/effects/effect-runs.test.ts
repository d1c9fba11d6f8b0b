import { EffectRunQueue } from '../../../operator/effects/effect-runs';

/** A job that the test ends. */
function job(): { readonly run: () => Promise<void>; readonly end: () => void; begun: boolean } {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const made = {
    begun: false,
    end: () => end(),
    run: () => {
      made.begun = true;
      return ended;
    },
  };
  return made;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('so many run at once, in the order in which they were asked for, and probes beside them', async () => {
  const runs = new EffectRunQueue({ limit: 1, stop: new AbortController().signal });
  const [first, second, probe, late] = [job(), job(), job(), job()];
  const ask = (uid: string, { run }: ReturnType<typeof job>, isProbe = false) =>
    runs.start(uid, { effect: 'e', job: run, onChange: () => undefined, isProbe });
  ask('1', first);
  ask('2', second);
  ask('3', probe, true);
  ask('4', late, true);
  expect([first, second, probe, late].map(({ begun }) => begun)).toEqual([true, false, true, false]);
  expect(runs.of('2')?.state).toBe('waiting');
  expect(() => ask('1', job())).toThrow('under way already');
  probe.end();
  await turn();
  expect([second.begun, late.begun]).toEqual([false, true]);
  first.end();
  await turn();
  expect(second.begun).toBe(true);
  expect(runs.of('1')).toBeUndefined();
});

test('what waits may be withdrawn, what runs goes on', async () => {
  const runs = new EffectRunQueue({ limit: 1, stop: new AbortController().signal });
  const [first, second, third] = [job(), job(), job()];
  const ask = (uid: string, { run }: ReturnType<typeof job>) =>
    runs.start(uid, { effect: 'e', job: run, onChange: () => undefined });
  ask('1', first);
  ask('2', second);
  ask('3', third);
  runs.cancelWaiting('1');
  runs.cancelWaiting('2');
  expect([runs.of('1')?.state, runs.of('2')]).toEqual(['running', undefined]);
  first.end();
  await turn();
  expect([second.begun, third.begun]).toEqual([false, true]);
});

test('after a stop what runs ends, and what waits never begins', async () => {
  const stop = new AbortController();
  const runs = new EffectRunQueue({ limit: 1, stop: stop.signal });
  const [first, second, third] = [job(), job(), job()];
  const ask = (uid: string, { run }: ReturnType<typeof job>) =>
    runs.start(uid, { effect: 'e', job: run, onChange: () => undefined });
  ask('1', first);
  ask('2', second);
  stop.abort();
  ask('3', third);
  first.end();
  await runs.waitUntilIdle();
  expect([first, second, third].map(({ begun }) => begun)).toEqual([true, false, false]);
  expect(runs.size).toBe(0);
});
