import { setTimeout as delay } from 'node:timers/promises';

/** Repeats the assertion until it holds; after `timeoutMs` its last failure is thrown. */
export async function eventually(assertion: () => void, timeoutMs = 5000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      assertion();
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(5);
    }
  }
}
