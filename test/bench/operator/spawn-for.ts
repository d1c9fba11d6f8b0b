import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

/** How a program is started. */
export interface Start {
  readonly command: string;
  readonly args: readonly string[];
  /** Nothing else of this process's environment is handed on. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a program that ends with the signal, and with this process. */
export function spawnFor({ command, args, env }: Start, stdin: 'ignore' | 'pipe', signal: AbortSignal): ChildProcess {
  signal.throwIfAborted();
  const child = spawn(command, args, { stdio: [stdin, 'pipe', 'pipe'], env: { ...env } });
  const end = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  process.once('exit', end);
  child.once('close', () => {
    signal.removeEventListener('abort', end);
    process.removeListener('exit', end);
  });
  return child;
}
