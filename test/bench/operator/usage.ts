import { readFile } from 'node:fs/promises';
import type { Usage } from '../../../bench/results';

/** Ticks of `/proc/<pid>/stat`: USER_HZ, which is 100 on every architecture that Node runs on. */
const ticksPerSecond = 100;

/** Reads `/proc`; NaN where there is none. */
export async function usageOf(pid: number): Promise<Usage> {
  try {
    const [stat, status] = await Promise.all([read(pid, 'stat'), read(pid, 'status')]);
    // The second field, the program's name in parentheses, may hold spaces; utime and stime are the 14th and 15th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const peakKiB = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
      peakMiB: Number(peakKiB ?? NaN) / 1024,
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { cpuSeconds: NaN, peakMiB: NaN };
    throw error;
  }
}

function read(pid: number, file: string): Promise<string> {
  return readFile(`/proc/${String(pid)}/${file}`, 'utf8');
}
