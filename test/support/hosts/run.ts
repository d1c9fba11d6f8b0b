import { spawn } from 'node:child_process';

/** How a command ended, and what it printed. */
export interface Ran {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. @param input - text for its stdin */
export function run(command: string, args: readonly string[], input = ''): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    child.stdin.on('error', () => undefined); // it did not read all of it; its exit code tells
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Runs a shell script on this machine. @throws when it fails, with what it printed */
export async function must(ran: Promise<Ran>): Promise<string> {
  const { exitCode, stdout, stderr } = await ran;
  if (exitCode === 0) return stdout;
  throw new Error(`a command of the test hosts failed with ${String(exitCode)}: ${stderr}${stdout}`);
}
