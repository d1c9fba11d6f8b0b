import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as local from '@pulumi/command/local';
import * as remote from '@pulumi/command/remote';
import * as pulumi from '@pulumi/pulumi';
import { type Connection, Server, type Session, utils } from 'ssh2';
import { DeploymentError, Engine, InterruptedError, commandProvider, unwrap } from './index';

const canary = 'canary-77aa';
const hostKey = key();
const userKey = key();
let folder: string;
let server: SshServer;

/** A new key, as OpenSSH writes them. */
function key(): { private: string; public: string } {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const parsed = utils.parseKey(pem);
  if (parsed instanceof Error) throw parsed;
  return { private: pem, public: `${parsed.type} ${parsed.getPublicSSH().toString('base64')}` };
}

/** An SSH server in this process: takes one key, runs commands in a shell, and forwards connections. */
class SshServer {
  readonly seen: { command: string; env: Record<string, string> }[] = [];
  readonly clients = new Set<Connection>();
  refuse = 0;
  private readonly server = new Server({ hostKeys: [hostKey.private] }, (client) => this.serve(client));

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    for (const client of this.clients) client.end();
    this.server.close();
  }

  private serve(client: Connection): void {
    this.clients.add(client);
    client.on('error', () => undefined);
    client.on('close', () => this.clients.delete(client));
    client.on('authentication', (context) => {
      const known = context.method === 'publickey' && userKey.public.endsWith(context.key.data.toString('base64'));
      if (known && this.refuse-- <= 0) context.accept();
      else context.reject(['publickey']);
    });
    client.on('session', (accept) => this.session(accept()));
    client.on('tcpip', (accept, _, info) => {
      const inner = accept();
      const socket = connect(info.destPort, info.destIP);
      socket.on('error', () => inner.close());
      inner.on('close', () => socket.destroy());
      inner.pipe(socket).pipe(inner);
    });
  }

  private session(session: Session): void {
    const env: Record<string, string> = {};
    session.on('env', (accept, _, { key: name, val }) => {
      env[name] = val;
      (accept as (() => void) | undefined)?.();
    });
    session.on('exec', (accept, _, { command }) => {
      this.seen.push({ command, env });
      const channel = accept();
      const child = spawn('/bin/sh', ['-c', command], { env: { ...process.env, ...env }, detached: true });
      channel.pipe(child.stdin);
      child.stdin.on('error', () => undefined);
      child.stdout.pipe(channel, { end: false });
      child.stderr.pipe(channel.stderr, { end: false });
      channel.on('close', () => {
        if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL');
      });
      child.on('close', (code) => {
        channel.exit(code ?? 1);
        channel.end();
      });
    });
  }
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'engine-command-'));
  server = new SshServer();
  await server.listen();
});

afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

function newEngine(): Engine {
  return new Engine({ providers: [commandProvider()] });
}

function connection(more: object = {}): remote.CommandArgs['connection'] {
  const privateKey = pulumi.secret(userKey.private);
  return { host: '127.0.0.1', port: server.port, privateKey, hostKey: hostKey.public, dialErrorLimit: 0, ...more };
}

async function failure(run: Promise<unknown>): Promise<DeploymentError> {
  return run.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => {
      expect(error).toBeInstanceOf(DeploymentError);
      return error as DeploymentError;
    },
  );
}

describe('remote.Command', () => {
  test('creates, updates, replaces on triggers, and deletes; stdin is read, and neither it nor the key is anywhere to be seen', async () => {
    const engine = newEngine();
    const file = join(folder, 'file');
    const program = (text: string, trigger: string) => () => {
      const command = new remote.Command('c', {
        connection: connection(),
        create: `read line; echo "create $line" >> ${file}; wc -c < ${file}`,
        update: `echo "update after $PULUMI_COMMAND_STDOUT" >> ${file}; echo updated; echo warned >&2`,
        delete: `echo delete >> ${file}`,
        stdin: pulumi.secret(`${canary}-${text}\n`),
        triggers: [trigger],
        environment: { OPEN: 'open' },
      });
      return { stdout: command.stdout, stderr: command.stderr };
    };
    const first = await engine.up(program('1', 'a'));
    expect(readFileSync(file, 'utf8')).toBe(`create ${canary}-1\n`);
    expect(Number(first.output('stdout'))).toBe(`create ${canary}-1\n`.length);
    expect(engine.state.resource('c').inputs.connection).toHaveProperty('value.user', 'root');
    expect(first.processes).toEqual([
      { where: `127.0.0.1:${server.port}`, argv: [expect.stringMatching(/^read line/)], env: { OPEN: 'open' } },
    ]);
    expect(first.plainText()).not.toContain(canary);
    expect(first.plainText()).not.toContain(userKey.private.split('\n')[1]);

    expect((await engine.up(program('1', 'a'))).summary).toEqual([]);
    const second = await engine.up(program('2', 'a'));
    expect(second.summary).toEqual(['update c']);
    expect([second.output('stdout'), second.output('stderr')]).toEqual(['updated', 'warned']);
    expect(second.log.map((entry) => entry.message)).toEqual(['updated', 'warned']);
    expect(server.seen.at(-1)!.env.PULUMI_COMMAND_STDOUT).toBe(first.output('stdout'));

    expect((await engine.up(program('2', 'b'))).summary).toEqual(['delete-replaced c', 'replace c']);
    await engine.destroy();
    expect(readFileSync(file, 'utf8').split('\n')).toEqual([
      `create ${canary}-1`,
      expect.stringMatching(/^update after \d+$/),
      `create ${canary}-2`,
      'delete',
      'delete',
      '',
    ]);
  });

  test('a failed command stores nothing, and tells its text and all it printed', async () => {
    const engine = newEngine();
    const failed = await failure(
      engine.up(() => {
        new remote.Command('c', { connection: connection(), create: 'echo out; echo err >&2; exit 3' });
      }),
    );
    expect(failed.message).toContain('::c: Process exited with status 3: running "echo out; echo err >&2; exit 3":\n');
    expect(failed.message).toContain('out\n');
    expect(failed.message).toContain('err\n');
    expect(engine.state.has('c')).toBe(false);
  });

  test('another host key, and a refused user key, are refused', async () => {
    const wrong = { hostKey: key().public };
    await failure(
      newEngine().up(() => {
        new remote.Command('c', { connection: connection(wrong), create: 'true' });
      }),
    );
    const stranger = { privateKey: key().private };
    await failure(
      newEngine().up(() => {
        new remote.Command('c', { connection: connection(stranger), create: 'true' });
      }),
    );
    expect(server.seen).toEqual([]);
  });

  test('tries again as often as it may', async () => {
    server.refuse = 2;
    const program = () => {
      new remote.Command('c', { connection: connection({ dialErrorLimit: 2 }), create: 'true' });
    };
    const result = await newEngine().up(program);
    expect(result.log.map((entry) => entry.message)).toEqual([
      'Dial 1/2 failed: retrying',
      'Dial 2/2 failed: retrying',
    ]);
  });

  test('goes through a proxy', async () => {
    const second = new SshServer();
    await second.listen();
    const through = connection({ proxy: { ...(connection() as object), port: second.port } });
    const result = await newEngine().up(() => ({
      out: new remote.Command('c', { connection: through, create: 'echo hello' }).stdout,
    }));
    expect(result.output('out')).toBe('hello');
    second.close();
  });

  test('a connection that is cut fails the command', async () => {
    const program = () => {
      new remote.Command('c', { connection: connection(), create: 'echo begun; sleep 60' });
    };
    const cut = setInterval(() => {
      if (server.seen.length > 0) server.clients.forEach((client) => client.end());
    }, 50);
    const failed = await failure(newEngine().up(program));
    clearInterval(cut);
    expect(failed.message).toMatch(/remote command exited without exit status or exit signal: running "echo begun/);
  });

  test('a killed run cuts the connection', async () => {
    const abort = new AbortController();
    const engine = newEngine();
    const program = () => {
      new remote.Command('c', { connection: connection(), create: 'sleep 60' });
    };
    const watch = setInterval(() => server.seen.length > 0 && abort.abort(), 20);
    await expect(engine.up(program, { signal: abort.signal })).rejects.toThrow(InterruptedError);
    clearInterval(watch);
    expect(engine.state.pendingOperations).toHaveLength(1);
  });

  test('a preview runs nothing, and does not know what it will print', async () => {
    const plan = await newEngine().preview(() => {
      const command = new remote.Command('c', { connection: connection(), create: 'echo x' });
      return { create: command.create, stdout: command.stdout };
    });
    expect(plan.output('create')).toBe('echo x');
    expect(plan.output('stdout')).toMatchObject({ unknown: true });
    expect(server.seen).toEqual([]);
  });
});

describe('local.Command', () => {
  test('runs in a shell, with environment, folder and stdin, and logs what it may', async () => {
    writeFileSync(join(folder, 'here'), '');
    const engine = newEngine();
    const result = await engine.up(() => {
      const command = new local.Command(
        'c',
        {
          create: 'ls; cat; echo "$OPEN" >&2',
          dir: folder,
          stdin: pulumi.secret(canary),
          environment: { OPEN: 'open' },
          logging: 'stderr',
        },
        { additionalSecretOutputs: ['stdout'] },
      );
      return { stdout: command.stdout };
    });
    expect(result.output('stdout')).toBe(`here\n${canary}`);
    expect(result.isSecret('stdout')).toBe(true);
    expect(result.log.map((entry) => entry.message)).toEqual(['open']);
    expect(result.processes).toMatchObject([
      { where: 'local', argv: ['/bin/sh', '-c', expect.any(String)], env: { OPEN: 'open' } },
    ]);
    expect(result.plainText()).not.toContain(canary);
    expect(unwrap(engine.state.resource('c').outputs.stdout!)).toBe(`here\n${canary}`);
  });

  test('a failure tells the status', async () => {
    const failed = await failure(
      newEngine().up(() => {
        new local.Command('c', { create: 'exit 7' });
      }),
    );
    expect(failed.message).toContain('::c: exit status 7: running "exit 7"');
  });

  test('a killed run ends what was started', async () => {
    const abort = new AbortController();
    const [mark, go] = [join(folder, 'mark'), join(folder, 'go')];
    const program = () => {
      const late = `until test -e ${go}; do sleep 0.02; done; echo late > ${mark}`;
      new local.Command('c', { create: `(${late}) & echo begun > ${mark}; wait` });
    };
    const watch = setInterval(() => {
      if (readable(mark) === 'begun\n') abort.abort();
    }, 20);
    await expect(newEngine().up(program, { signal: abort.signal })).rejects.toThrow(InterruptedError);
    clearInterval(watch);
    writeFileSync(go, '');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(readable(mark)).toBe('begun\n');
  });
});

function readable(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
