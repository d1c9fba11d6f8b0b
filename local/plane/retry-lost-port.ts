import { messageOf } from '../errors';
import { PartEndedError } from './ready';

const attempts = 3;

/** Starts something on free ports; when another program took one between the look and the start, starts over. */
export async function retryLostPort<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      const lostPort = error instanceof PartEndedError && /address already in use/i.test(messageOf(error));
      if (!lostPort || attempt === attempts) throw error;
    }
  }
}
