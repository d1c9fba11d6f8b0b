import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const parts = '/opt/stand-in/bin';

/** Starts a part; when it ends, so does this process, and the service manager starts all of it again. */
export function startPart(name: string, args: readonly string[], logFolder: string): void {
  mkdirSync(logFolder, { recursive: true, mode: 0o700 });
  const log = openSync(join(logFolder, `${name}.log`), 'a', 0o600);
  const env = { PATH: process.env['PATH'], HOME: '/root', TMPDIR: '/tmp' };
  const child = spawn(join(parts, name), args, { stdio: ['ignore', log, log], env });
  closeSync(log);
  child.once('error', (error) => fail(`${name} cannot be started: ${error.message}`));
  child.once('exit', (code, signal) => fail(`${name} ended (${String(code ?? signal)}); see ${logFolder}/${name}.log`));
  process.once('exit', () => child.kill('SIGKILL'));
}

/** Ends this process with a word in the service's log. */
export function fail(message: string): never {
  console.log(`level=fatal msg=${JSON.stringify(message)}`);
  process.exit(1);
}

/** Repeats until it gives something. What it throws counts as nothing. @throws after the time, with what it last threw */
export async function until<T>(what: string, seconds: number, act: () => Promise<T | undefined | false>): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    let last = 'no';
    try {
      const value = await act();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() > end) throw new Error(`${what} took more than ${seconds} s: ${last}`);
    await delay(200);
  }
}
