import { setTimeout as delay } from 'node:timers/promises';
import { LocalControlPlaneError, messageOf } from '../errors';
import { duration } from '../progress';
import { describeExit, type GuardedProcess } from './guarded-process';

/** What to wait for. */
export interface ReadyOptions {
  /** What should become true, for messages: "kube-apiserver to be ready". */
  readonly what: string;
  /** The processes without which it never will. */
  readonly processes: readonly GuardedProcess[];
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A look at whether it is true yet: `true`, or what is missing, in words. */
export type Probe = () => Promise<true | string>;

/** Pause between two looks, in milliseconds. */
const pollMs = 40;

/** A process that had to run has ended. */
export class PartEndedError extends LocalControlPlaneError {
  override readonly name = 'PartEndedError';
}

/**
 * Polls until the probe says true.
 *
 * @throws PartEndedError when one of the processes ends first, with the last lines of its log
 * @throws LocalControlPlaneError at the deadline, with what was missing last
 */
export async function untilReady(probe: Probe, options: ReadyOptions): Promise<void> {
  const started = Date.now();
  let missing = 'nothing was seen yet';
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const seen = await probe();
      if (seen === true) return;
      missing = seen;
    } catch (error) {
      missing = messageOf(error); // not reachable yet, which is what we wait out
    }
    for (const process of options.processes) {
      if (!process.running) throw new PartEndedError(describeExit(await process.exited, process.logFile));
    }
    if (Date.now() - started > options.timeoutMs) throw await tooLate(missing, options);
    await delay(pollMs, undefined, { signal: options.signal });
  }
}

async function tooLate(missing: string, options: ReadyOptions): Promise<Error> {
  const logs = await Promise.all(
    options.processes.map(async (process) => `The last lines of ${process.logFile}:\n${await process.lastLines()}`),
  );
  const message = `waited ${duration(options.timeoutMs)} for ${options.what}; last seen: ${missing}.`;
  return new LocalControlPlaneError([message, ...logs].join('\n'));
}
