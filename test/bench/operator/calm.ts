import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** How busy the machine may be to be called calm, as a share of all its cores. */
const calmShare = 0.2;
const lookMs = 500;
/** Others may use the machine all the time; then a pause must do. */
const patienceLooks = 10;

/** Ticks of all cores since the machine's start. */
export interface Ticks {
  readonly idle: number;
  readonly all: number;
}

/**
 * Waits until the machine has little to do, for some seconds at most: what was just deleted or written is still being told to watchers and
 * cleaned up by the server, and whoever comes next would pay for it.
 */
export async function calm(read: () => Ticks = ticks, pauseMs = lookMs): Promise<void> {
  let before = read();
  for (let looks = 0; looks < patienceLooks; looks += 1) {
    await delay(pauseMs);
    const now = read();
    const busy = 1 - (now.idle - before.idle) / (now.all - before.all);
    if (busy <= calmShare) return;
    before = now;
  }
}

function ticks(): Ticks {
  const sums = { idle: 0, all: 0 };
  for (const { times } of cpus()) {
    sums.idle += times.idle;
    sums.all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return sums;
}
