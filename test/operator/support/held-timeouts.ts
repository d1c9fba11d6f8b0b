/**
 * From now on `performance.now()` stands still and `setTimeout` waits, until `jest.advanceTimersByTime`; so a machine that is slow, or that
 * pauses, comes too late for no timer. Nothing else is touched: connections, promises, `timers/promises` and `eventually` go on.
 */
export function holdTimeouts(): void {
  jest.useFakeTimers({
    doNotFake: [
      ...(['Date', 'hrtime', 'nextTick', 'queueMicrotask'] as const),
      ...(['setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'] as const),
    ],
  });
}
