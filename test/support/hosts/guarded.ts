import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

/** A process at the root of namespaces of its own. */
export interface Guarded {
  /** Its pid as this process sees it; the namespaces are reached through it. */
  readonly pid: number;
  /** Ends it, and with it everything in its namespaces. */
  end(): Promise<void>;
}

/**
 * Starts a script as the first process of new namespaces. It inherits a pipe as descriptor 3 that closes when this process ends, SIGKILL
 * included, and is to end then; the kernel ends everything else in its process namespace with it.
 *
 * @param namespaces - options of `unshare`, besides `--pid --fork --kill-child`
 * @param command - what prints its pid as its first line once it is ready
 */
export async function startGuarded(namespaces: readonly string[], command: readonly string[]): Promise<Guarded> {
  const child = spawn('unshare', [...namespaces, '--pid', '--fork', '--kill-child', '--', ...command], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // Ctrl-C in a terminal is for the test, which then ends its hosts.
    detached: true,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const pid = Number(await firstLine(child));
  // A test that forgets its hosts, or fails before it has them all, still comes to its end, and they with it.
  child.unref();
  for (const stream of child.stdio) (stream as Socket | null)?.unref();
  return {
    pid,
    end: async () => {
      child.ref();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  const { stdout, stderr } = child as ChildProcess & { stdout: Readable; stderr: Readable };
  return new Promise((resolve, reject) => {
    let out = '';
    let errors = '';
    stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const end = out.indexOf('\n');
      if (end >= 0) resolve(out.slice(0, end));
    });
    child.once('error', reject);
    child.once('close', (code) =>
      reject(new Error(`a test host did not start (exit code ${String(code)}): ${errors}`)),
    );
  });
}
