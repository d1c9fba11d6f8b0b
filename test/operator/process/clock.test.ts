import { microTime, systemClock } from '../../../operator/process/clock';

describe('systemClock', () => {
  it('fires timers unless cancelled, however often that is said', async () => {
    const fired = jest.fn();
    const cancel = systemClock.setTimer(fired, 0, { background: true });
    cancel();
    cancel();
    await new Promise<void>((resolve) => void systemClock.setTimer(resolve, -5));
    await new Promise<void>((resolve) => systemClock.nextTurn(resolve));
    expect(fired).not.toHaveBeenCalled();
  });

  it('never fires a very long timer at once', async () => {
    const fired = jest.fn();
    const cancel = systemClock.setTimer(fired, 1e12);
    await new Promise<void>((resolve) => void systemClock.setTimer(resolve, 1));
    cancel();
    expect(fired).not.toHaveBeenCalled();
  });

  it('tells two times', () => {
    expect(systemClock.monotonicMs()).toBeLessThanOrEqual(systemClock.monotonicMs());
    expect(Math.abs(systemClock.wallMs() - Date.now())).toBeLessThan(1000);
  });
});

it('microTime has six digits, as the API server asks', () => {
  expect(microTime(Date.UTC(2026, 1, 3, 4, 5, 6, 7))).toBe('2026-02-03T04:05:06.007000Z');
});
