import { readFileSync } from 'node:fs';

/** The resident memory of a process, in MiB. Source: proc_pid_status(5), which counts in kB of 1024 bytes. */
export function rssMiB(pid: number): number {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8')) ?? [];
  if (kB === undefined) throw new Error(`process ${String(pid)} has no VmRSS: has it ended?`);
  return Number(kB) / 1024;
}
