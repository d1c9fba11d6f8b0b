import { existsSync, readFileSync } from 'node:fs';

/**
 * The process whose number a file holds.
 * @throws where it holds none, as between its opening and its writing: a signal to the "process 0" that an empty text is as a number goes
 * to everything in the test's own process group, the test run among it
 */
export function readPid(file: string): number {
  const text = readFileSync(file, 'utf8').trim();
  if (!/^[1-9][0-9]*$/.test(text)) throw new Error(`${file} holds no process number: "${text}"`);
  return Number(text);
}

/** The process whose number a file holds, once it does. The test's own time is the bound. */
export async function waitForPid(file: string): Promise<number> {
  // Opened is not written: in between it is empty.
  while (!existsSync(file) || readFileSync(file, 'utf8') === '')
    await new Promise((resolve) => setTimeout(resolve, 20));
  return readPid(file);
}

/** What this process has computed so far, in milliseconds: unlike the clock, it stands still while other processes have the machine. */
export function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
