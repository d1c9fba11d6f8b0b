import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { usageOf } from '../../bench/measured-process';

let child: ChildProcess;

/** Burns user and system time, takes 100 MiB and gives them back; then tells what it has used, and waits. */
const program = `
  const { closeSync, openSync, readSync } = require('node:fs');
  let held = Buffer.alloc(100 << 20, 1);
  held = undefined;
  gc();
  const zero = openSync('/dev/urandom', 'r');
  const chunk = Buffer.alloc(1 << 20);
  while (process.cpuUsage().system < 200_000) readSync(zero, chunk);
  closeSync(zero);
  const before = process.cpuUsage().user;
  while (process.cpuUsage().user < before + 200_000);
  console.log(JSON.stringify(process.cpuUsage()));
  setInterval(() => undefined, 60_000);
`;

afterEach(() => void child.kill('SIGKILL'));

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('the CPU time is that of user and system, the memory the most that there ever was', async () => {
  child = spawn(process.execPath, ['--expose-gc', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
  const { user, system } = JSON.parse(line) as NodeJS.CpuUsage;
  const pid = child.pid ?? 0;
  const { cpuSeconds, peakMiB } = await usageOf(pid);
  // Both are above 0.2 s, so neither alone is near their sum; /proc counts in hundredths.
  expect(cpuSeconds).toBeGreaterThan((user + system) / 1e6 - 0.03);
  expect(cpuSeconds).toBeLessThan((user + system) / 1e6 + 0.15);
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
  expect(peakMiB).toBeGreaterThan(100);
  expect(peakMiB).toBeGreaterThan(Number(resident) / 1024 + 50);
  expect(peakMiB).toBeLessThan(300);
});

test('of a process that is gone, nothing is known', async () => {
  child = spawn(process.execPath, ['-e', '']);
  await once(child, 'close');
  expect(await usageOf(child.pid ?? 0)).toEqual({ cpuSeconds: NaN, peakMiB: NaN });
});
