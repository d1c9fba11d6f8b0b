import { setTimeout as delay } from 'node:timers/promises';

/**
 * Repeats the assertion until it holds; after `timeoutMs` its last failure is thrown. How soon it holds says nothing but how busy the machine
 * is: the bound is there so that the failure is told before Jest's own.
 */
export async function eventually(assertion: () => void | Promise<void>, timeoutMs = 20_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(5);
    }
  }
}
