import type { Client } from 'ssh2';
import { type Link, dial } from './dial';
import { Capture, type CommandRun, type Ran } from './run';

/** Runs a command on another machine over SSH. An interrupted run cuts the connection. */
export async function runRemotely(run: CommandRun): Promise<Ran> {
  const { request, command, inputs, env } = run;
  const connection = inputs.connection!;
  const link = await dial(connection, request);
  const cut = (): void => link.destroy();
  request.signal.addEventListener('abort', cut, { once: true });
  try {
    request.signal.throwIfAborted();
    request.spawned({ where: `${connection.host}:${connection.port}`, argv: [command], env });
    const capture = new Capture(run);
    const failure = await exec(link, run, capture);
    request.signal.throwIfAborted();
    return capture.end(failure);
  } finally {
    request.signal.removeEventListener('abort', cut);
    link.end();
  }
}

async function exec(link: Link, { command, env, inputs }: CommandRun, capture: Capture): Promise<string | undefined> {
  const client: Client = link.client;
  return new Promise((resolve, reject) => {
    let exit: string | undefined = 'wait: remote command exited without exit status or exit signal';
    const lost = (): void => resolve(exit);
    client.once('close', lost);
    client.exec(command, { env: { ...env } }, (error, channel) => {
      if (error !== undefined) {
        reject(error);
        return;
      }
      channel.on('data', (chunk: Buffer) => capture.take('stdout', chunk));
      channel.stderr.on('data', (chunk: Buffer) => capture.take('stderr', chunk));
      channel.on('exit', (code: number | null, signal?: string) => {
        exit =
          code === 0
            ? undefined
            : `Process exited with ${code === null ? `signal ${String(signal)}` : `status ${code}`}`;
      });
      // A command that does not read its stdin is no failure.
      channel.on('error', () => undefined);
      channel.on('close', () => {
        client.off('close', lost);
        resolve(exit);
      });
      channel.end(inputs.stdin ?? '');
    });
  });
}
