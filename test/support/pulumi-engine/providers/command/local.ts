import { spawn } from 'node:child_process';
import { Capture, type CommandRun, type Ran } from './run';

/** Runs a command in a shell of this machine. An interrupted run kills it and what it started. */
export async function runLocally(run: CommandRun): Promise<Ran> {
  const { request, command, inputs, env } = run;
  const interpreter = inputs.interpreter ?? ['/bin/sh', '-c'];
  const argv = [...interpreter, command];
  request.signal.throwIfAborted();
  request.spawned({ where: 'local', argv, env });
  const capture = new Capture(run);
  const child = spawn(argv[0]!, argv.slice(1), {
    cwd: inputs.dir ?? process.cwd(),
    env: { ...process.env, ...env },
    // A group of its own, so that what the shell started ends with it.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  request.signal.addEventListener('abort', kill, { once: true });
  child.stdout.on('data', (chunk: Buffer) => capture.take('stdout', chunk));
  child.stderr.on('data', (chunk: Buffer) => capture.take('stderr', chunk));
  // A command that does not read its stdin is no failure.
  child.stdin.on('error', () => undefined);
  child.stdin.end(inputs.stdin ?? '');
  try {
    const failure = await new Promise<string | undefined>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        if (code === 0) resolve(undefined);
        else resolve(code === null ? `signal: ${String(signal)}` : `exit status ${code}`);
      });
    });
    request.signal.throwIfAborted();
    return capture.end(failure);
  } finally {
    request.signal.removeEventListener('abort', kill);
  }
}
