import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Client } from 'ssh2';
import type {
  CheckRequest,
  DeleteRequest,
  Diff,
  DiffRequest,
  Provider,
  ProviderPackage,
  ProviderRequest,
} from '../engine/provider';
import { changedKeys, isMap, plainValues, toSecret, textOf, unwrap, type Value, type Values } from '../engine/values';
import {
  Capture,
  dial,
  type CommandInputs,
  type CommandRun,
  type SshConnection,
  type CommandOutput,
} from './command-run';

const runners: Readonly<Record<string, (run: CommandRun) => Promise<CommandOutput>>> = {
  'command:local:Command': runLocally,
  'command:remote:Command': runRemotely,
};

/**
 * The package `command`, as pulumi-command 1.2 is (provider/pkg/provider): `local.Command` in a shell of this machine, `remote.Command`
 * over SSH.
 */
export function commandProvider(): ProviderPackage {
  return { name: 'command', configure: () => provider };
}

const provider: Provider = {
  check: (request) => Promise.resolve(check(request)),
  diff: (request) => Promise.resolve(diff(request)),
  create: async (request) => {
    const inputs = inputsOf(request.inputs);
    const ran = inputs.create === undefined ? nothing : await run(request, inputs.create, inputs, nothing);
    return { id: `${request.name}${randomBytes(4).toString('hex')}`, outputs: { ...request.inputs, ...ran } };
  },
  update: async (request) => {
    const inputs = inputsOf(request.inputs);
    const command = inputs.update ?? inputs.create;
    const before = outputsOf(request.oldOutputs);
    const ran = command === undefined ? before : await run(request, command, inputs, before);
    return { outputs: { ...request.inputs, ...ran } };
  },
  delete: async (request: DeleteRequest) => {
    const inputs = inputsOf(request.outputs);
    if (inputs.delete !== undefined) await run(request, inputs.delete, inputs, outputsOf(request.outputs));
  },
};

const nothing: CommandOutput = { stdout: '', stderr: '' };

/** The whole connection is secret, and has the provider's defaults. */
function check({ type, inputs }: CheckRequest): { inputs: Values; failures?: readonly string[] } {
  if (!(type in runners)) return { inputs, failures: [`the test engine has no ${type}`] };
  if (type !== 'command:remote:Command') return { inputs };
  const connection = inputs.connection === undefined ? undefined : unwrap(inputs.connection);
  if (connection === undefined) return { inputs, failures: ['connection is required'] };
  if (!isMap(connection)) return { inputs };
  return { inputs: { ...inputs, connection: toSecret(withDefaults(connection)) } };
}

function withDefaults(connection: Values): Value {
  const defaults = { user: 'root', port: 22, dialErrorLimit: 10, perDialTimeout: 15 };
  const proxy = connection.proxy === undefined ? undefined : unwrap(connection.proxy);
  return { ...defaults, ...connection, ...(isMap(proxy) ? { proxy: withDefaults(proxy) } : {}) };
}

/** Another trigger is another resource; anything else that changes runs `update`, or `create` where there is none. */
function diff({ inputs, oldInputs }: DiffRequest): Diff {
  const changed = changedKeys(oldInputs, inputs);
  return { changed, replace: changed.filter((key) => key === 'triggers') };
}

async function run(
  request: ProviderRequest,
  command: string,
  inputs: CommandInputs,
  before: CommandOutput,
): Promise<CommandOutput> {
  const previous = inputs.addPreviousOutputInEnv === false ? nothing : before;
  const more = Object.entries({ PULUMI_COMMAND_STDOUT: previous.stdout, PULUMI_COMMAND_STDERR: previous.stderr });
  const env = { ...inputs.environment, ...Object.fromEntries(more.filter(([, text]) => text !== '')) };
  return runners[request.type]!({ request, command, inputs, env });
}

function inputsOf(values: Values): CommandInputs {
  return plainValues(values);
}

function outputsOf(values: Values): CommandOutput {
  return { stdout: textOf(values.stdout, 'stdout'), stderr: textOf(values.stderr, 'stderr') };
}

/** Runs a command in a shell of this machine. An interrupted run kills it and what it started. */
async function runLocally(run: CommandRun): Promise<CommandOutput> {
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

/** Runs a command on another machine over SSH. An interrupted run cuts the connection. */
async function runRemotely(run: CommandRun): Promise<CommandOutput> {
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

async function exec(
  link: SshConnection,
  { command, env, inputs }: CommandRun,
  capture: Capture,
): Promise<string | undefined> {
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
