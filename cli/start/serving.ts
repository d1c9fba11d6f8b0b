import type { GuardedProcess } from '../../local/plane/guarded-process';
import { loopback } from '../../local/plane/ports';
import { untilReady } from '../../local/plane/ready';

/** What to wait for. */
export interface ServingOptions {
  /** Port of `/metrics` on 127.0.0.1. */
  readonly port: number;
  /** When the process was started, or a moment before: by `Date.now()`. */
  readonly startedAt: number;
  readonly signal: AbortSignal;
  /** Milliseconds. @default 60000 */
  readonly timeoutMs?: number;
}

/** How long one answer may take, in milliseconds. */
const answerMs = 2_000;

/** By how much a start may seem to lie before itself, in milliseconds: metrics say it in whole seconds. */
const toleranceMs = 1_000;

/**
 * Waits until an operator serves its metrics. Asks the port itself, since a log of level `warn` does not speak of it. Another program that has got
 * the port is not taken for the operator: the answer says when the program began that gives it.
 *
 * @throws PartEndedError when the process ends first; LocalControlPlaneError when the time is over; both with the last lines of its log
 */
export async function untilServing(
  operator: GuardedProcess,
  { port, startedAt, signal, timeoutMs = 60_000 }: ServingOptions,
): Promise<void> {
  const probe = async (): Promise<true | string> => {
    const metrics = await answer(`http://${loopback}:${port}/metrics`);
    if (metrics === undefined) return 'nothing answers there';
    const [, began] = /^process_start_time_seconds (\d+)$/m.exec(metrics) ?? [];
    const isOurs = began !== undefined && Number(began) * 1000 >= startedAt - toleranceMs;
    // It may have ended since it answered.
    return (isOurs && operator.running) || 'another program answers there';
  };
  const what = `${operator.part} to serve its metrics on ${loopback}:${port}`;
  await untilReady(probe, { what, processes: [operator], timeoutMs, signal });
}

async function answer(url: string): Promise<string | undefined> {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(answerMs) })).text();
  } catch {
    // Refused, cut or too slow: all the same to who waits for it.
    return undefined;
  }
}
