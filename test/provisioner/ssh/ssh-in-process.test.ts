import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { LocalTransport } from '../../../provisioner/tasks/local-transport';
import { MachineError, MachineTransport } from '../../../provisioner/tasks/transport';
import { SshTransport } from '../../../provisioner/ssh/ssh-transport';
import { startInProcessHost, type InProcessHost } from '../../support/hosts';
import { temporaryFolder } from '../../support/temporary-folder';

// What can be seen without root and without machines of one's own; the rest is in test/e2e/provision/ssh.test.ts.
const hasClient = spawnSync('ssh', ['-V']).status === 0;
if (!hasClient) console.warn('no tests of SSH: there is no ssh client on PATH');
const suite = hasClient ? describe : describe.skip;

suite('a transport by SSH, to a server in this process', () => {
  const folder = temporaryFolder('kindred-ssh-unit-');
  let host: InProcessHost;
  let transport: SshTransport;
  beforeAll(async () => {
    host = await startInProcessHost();
    transport = new SshTransport({ privateKey: () => Promise.resolve(host.privateKey), folder });
  });
  afterAll(() => host.end());
  afterEach(() => expect(readdirSync(folder)).toEqual([]));

  const run = (script: string, stdin = '', machine = host.machine()) =>
    transport.run({ machine, script, stdin, timeoutSeconds: 20 });
  const reason = (ran: Promise<unknown>): Promise<unknown> =>
    ran.then(
      () => 'none',
      (error: unknown) => (error instanceof MachineError ? error.reason : error),
    );

  test('stdin goes in, both outputs and the exit code come back; argv holds the script alone', async () => {
    const ran = await run('read -r x; echo "got $x"; echo oh >&2; exit 3', 'canary\n');
    expect(ran).toEqual({ exitCode: 3, stdout: 'got canary\n', stderr: 'oh\n' });
    expect(host.commands).toHaveLength(1);
    expect(Buffer.from(/ ([A-Za-z0-9+/=]{20,}) /.exec(host.commands[0]!)![1]!, 'base64').toString()).not.toContain(
      'canary',
    );
  });

  test('another host key, a refused key, nobody there', async () => {
    const before = host.machine();
    await host.changeHostKey();
    expect(await reason(run('true', '', before))).toBe('HostKeyMismatch');
    await host.refuseKey();
    expect(await reason(run('true'))).toBe('AuthenticationFailed');
    await host.acceptKey();
    await host.stopSshd();
    expect(await reason(run('true'))).toBe('Unreachable');
    await host.startSshd();
    expect((await run('echo back')).stdout).toBe('back\n');
  });

  test('a connection that is cut', async () => {
    const cut = reason(run('sleep 20'));
    while (!host.commands.at(-1)!.includes(Buffer.from('sleep 20').toString('base64').slice(0, 8))) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    await host.dropConnections();
    expect(await cut).toBe('ConnectionLost');
  });

  test('with a machine by SSH, without one here', async () => {
    const both = new MachineTransport(transport, new LocalTransport());
    const ask = { script: 'echo "$HOME"', stdin: '', timeoutSeconds: 20 };
    expect((await both.run({ ...ask, machine: host.machine() })).stdout).toBe(`${host.home}\n`);
    expect((await both.run(ask)).stdout).toBe(`${String(process.env['HOME'])}\n`);
  });
});
