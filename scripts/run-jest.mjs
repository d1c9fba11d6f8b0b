// Runs Jest so that the run always ends, whatever its tests leave running.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Runs Jest and waits for its end. Jest waits for the output of its workers to close, and a process that a test started and never
 * ended keeps it open; so Jest gets some time after its report is written, and then everything of this run is killed.
 *
 * @param args - Jest's program and arguments
 * @param options - `report`: the file that Jest writes when all tests have ended; `cwd`, `env`: Jest's; `graceMs`: how long Jest may
 * take to exit after that, `limitMs`: how long the run may take at most; `onChild`: is given Jest's process
 * @returns Jest's exit code or signal, and, where the run was killed, why: with the processes that were still running
 */
export async function runJest(args, { report, cwd, env, graceMs = 60_000, limitMs = Infinity, onChild = () => {} }) {
  const run = randomUUID();
  const child = spawn(process.execPath, args, { cwd, env: { ...env, KINDRED_TEST_RUN: run }, stdio: 'inherit' });
  onChild(child);
  let killed;
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  const watching = new AbortController();
  const watch = watchForEnd(report, { graceMs, limitMs, signal: watching.signal }).then(async (why) => {
    if (why === undefined) return;
    const running = processesOf(run).filter(({ pid }) => pid !== child.pid);
    killed = `${why}; still running: ${running.map(({ pid, command }) => `${pid} ${command}`).join(' | ') || 'nothing else'}`;
    child.kill('SIGKILL');
    // Again and again: what is to be killed may just have started something.
    for (let left = running; left.length > 0; left = processesOf(run)) {
      for (const { pid } of left) kill(pid);
      await delay(50);
    }
  });
  try {
    return { code: await ended, killed };
  } finally {
    watching.abort();
    await watch;
  }
}

/** Why the run is to be killed, or nothing once the signal says that it has ended. */
async function watchForEnd(report, { graceMs, limitMs, signal }) {
  const started = Date.now();
  let writtenAt;
  while (!signal.aborted) {
    const now = Date.now();
    if (writtenAt === undefined && existsSync(report)) writtenAt = now;
    if (writtenAt !== undefined && now - writtenAt >= graceMs)
      return `Jest did not exit within ${Math.round(graceMs / 1000)} s after its report`;
    if (now - started >= limitMs) return `the tests did not end within ${Math.round(limitMs / 60_000)} minutes`;
    await delay(Math.min(500, graceMs), undefined, { signal }).catch(() => undefined); // aborted: the loop ends
  }
  return undefined;
}

/** The processes that inherited the environment of a run; none where the system has no /proc. */
function processesOf(run) {
  if (!existsSync('/proc/self/environ')) return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`KINDRED_TEST_RUN=${run}`)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      return [{ pid: Number(pid), command: command.slice(0, 200) }];
    } catch {
      return []; // ended while we looked
    }
  });
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
