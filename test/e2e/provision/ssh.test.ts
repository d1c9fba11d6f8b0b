import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../../testing/wait-for';
import type { Machine } from '../../../provision/task/task';
import { MachineError } from '../../../provisioner/tasks/transport';
import { SshTransport, type Endpoint, type SshTransportOptions } from '../../../provisioner/ssh/ssh-transport';
import { keyRefOf, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { newSshKeys } from '../../support/hosts/ssh-host';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

const folder = temporaryFolder('kindred-ssh-test-');
let hosts: Hosts;

function transport(options: Partial<SshTransportOptions> = {}): SshTransport {
  const privateKey = (machine: Machine): Promise<string> => Promise.resolve(hosts.privateKey(machine.sshKey!));
  return new SshTransport({ privateKey, folder, ...options });
}

interface Asked {
  readonly stdin?: string;
  readonly timeoutSeconds?: number;
  readonly signal?: AbortSignal;
  readonly via?: SshTransport;
}

function run(machine: Machine, script: string, { stdin = '', timeoutSeconds = 30, signal, via }: Asked = {}) {
  return (via ?? transport()).run({ machine, script, stdin, timeoutSeconds, signal });
}

/** The reason and the message of a run that is to fail. */
async function failure(ran: Promise<unknown>): Promise<Pick<MachineError, 'reason' | 'message'>> {
  const error: unknown = await ran.then(
    (value) => new Error(`it did not fail: ${JSON.stringify(value)}`),
    (caught: unknown) => caught,
  );
  if (!(error instanceof MachineError)) throw error;
  return { reason: error.reason, message: error.message };
}

async function started(host: TestHost): Promise<void> {
  await waitFor(
    async () => (await host.exec('[ -e /tmp/started ] && rm /tmp/started && echo yes || true')) === 'yes\n',
  );
}

describeOnHosts('scripts over SSH', () => {
  let host: TestHost;
  beforeAll(async () => {
    hosts = await startHosts({ names: ['one', 'two'] });
    host = hosts.get('one');
  });
  afterAll(() => hosts.end());
  afterEach(() => expect(readdirSync(folder)).toEqual([]));

  test('run as root, with stdin, exit code and both outputs apart', async () => {
    const script = `read -r line\nprintf '%s' "$line as $(id -un)"; echo "it's \\"quoted\\" $HOME" >&2; exit 7`;
    const expected = {
      exitCode: 7,
      stdout: 'déjà as root',
      stderr: expect.stringContaining('it\'s "quoted" /root') as string,
    };
    expect(await run(host.machine(), script, { stdin: 'déjà\n' })).toEqual(expected);
  });

  test('a user who may use sudo becomes root, one who may not is told so', async () => {
    const { stdout } = await run(host.machine('admin'), 'read -r x; id -un; echo "$x"', { stdin: 'given\n' });
    expect(stdout).toBe('root\ngiven\n');
    const refused = await run(host.machine('guest'), 'id -un');
    expect(refused.exitCode).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ ok: false, reason: 'PreflightFailed' });
  });

  test("an exit code of 255 with an answer is the script's own", async () => {
    expect(await run(host.machine(), `echo '{"ok":false}'; exit 255`)).toMatchObject({ exitCode: 255 });
  });

  test('of an endless output the end is kept', async () => {
    const { stdout } = await run(host.machine(), 'head -c 20000000 /dev/zero | tr "\\0" x; echo; echo the-end');
    expect(stdout.length).toBe(4 * 1024 * 1024);
    expect(stdout.endsWith('x\nthe-end\n')).toBe(true);
  });

  test('while one runs, its files are private; argv and environment hold no key', async () => {
    const running = run(host.machine(), 'touch /tmp/started; read -r x; while [ ! -e /tmp/go ]; do sleep 0.05; done', {
      stdin: 'x\n',
    });
    await started(host);
    const [inside = ''] = readdirSync(folder);
    expect(statSync(join(folder, inside)).mode & 0o777).toBe(0o700);
    const modes = readdirSync(join(folder, inside)).map((name) => statSync(join(folder, inside, name)).mode & 0o777);
    expect(modes.length).toBeGreaterThanOrEqual(4);
    expect(modes.every((mode) => mode === 0o600)).toBe(true);
    await host.exec('touch /tmp/go');
    await running;
  });

  describe('fails with a reason and what to do', () => {
    test('another host key: nothing is sent', async () => {
      const before = host.machine();
      await host.changeHostKey();
      const { reason, message } = await failure(run(before, 'touch /tmp/was-run'));
      expect({ reason, message }).toEqual({
        reason: 'HostKeyMismatch',
        message: expect.stringContaining(`root@${host.address} shows another host key`) as string,
      });
      expect(await host.exec('ls /tmp/was-run 2>&1 || true')).toContain('No such file');
      expect((await run(host.machine(), 'echo fine')).stdout).toBe('fine\n');
    });

    test('no host key', async () => {
      const { address, user, sshKey } = host.machine();
      const machine: Machine = { address, user, sshKey };
      expect(await failure(run(machine, 'true'))).toMatchObject({
        reason: 'HostKeyUnknown',
        message: expect.stringContaining('nothing was sent') as string,
      });
    });

    test('a key that is refused', async () => {
      await host.refuseKey();
      expect(await failure(run(host.machine(), 'true'))).toMatchObject({
        reason: 'AuthenticationFailed',
        message: expect.stringContaining('authorized_keys') as string,
      });
      await host.acceptKey();
    });

    test('a key with a passphrase, and one that is none', async () => {
      const { privateKey: locked } = newSshKeys('p');
      const withKey = (key: string) =>
        run(host.machine(), 'true', { via: transport({ privateKey: () => Promise.resolve(key) }) });
      const refusal = await failure(withKey(locked));
      expect(refusal).toMatchObject({ reason: 'InvalidKey', message: expect.stringContaining('passphrase') as string });
      expect(await failure(withKey('c2VjcmV0'))).toMatchObject({ reason: 'InvalidKey' });
    });

    test('nobody listening, and a name that does not exist', async () => {
      await host.stopSshd();
      expect(await failure(run(host.machine(), 'true'))).toMatchObject({ reason: 'Unreachable' });
      await host.startSshd();
      const nameless = { ...host.machine(), address: 'no-such-host.invalid' };
      expect(await failure(run(nameless, 'true'))).toMatchObject({ reason: 'Unreachable' });
    });

    test('a connection that is cut in the middle', async () => {
      const cut = failure(run(host.machine(), 'touch /tmp/started; sleep 30'));
      await started(host);
      await host.dropConnections();
      const { reason, message } = await cut;
      expect(reason).toBe('ConnectionLost');
      expect(message).toContain('running it again is safe');
    });

    test('a network that swallows everything: the time is up', async () => {
      const lost = failure(run(host.machine(), 'touch /tmp/started; sleep 30', { timeoutSeconds: 3 }));
      await started(host);
      await host.cutNetwork();
      expect(await lost).toMatchObject({ reason: 'TimedOut', message: expect.stringContaining('3 s') as string });
      await host.restoreNetwork();
    });

    test('the caller gives up', async () => {
      const abort = new AbortController();
      const given = failure(run(host.machine(), 'touch /tmp/started; sleep 30', { signal: abort.signal }));
      await started(host);
      abort.abort();
      expect(await given).toMatchObject({ reason: 'Aborted' });
    });

    test.each([
      { address: '-oProxyCommand=touch' },
      { address: 'a b' },
      { user: 'root\n  ProxyCommand x' },
      { port: 0 },
      { hostKey: 'ssh-ed25519 x\nkindred-machine y' },
    ])('a machine that is none: %j', async (wrong) => {
      expect(await failure(run({ ...host.machine(), ...wrong }, 'true'))).toMatchObject({ reason: 'InvalidMachine' });
    });
  });

  test('trust on first use records the key, warns, and holds the machine to it', async () => {
    const two = hosts.get('two');
    const { hostKey, ...machine } = two.machine();
    const stored = new Map<string, string>();
    const warnings: string[] = [];
    const id = ({ address, port }: Endpoint): string => `${address}:${port}`;
    const via = transport({
      trustOnFirstUse: {
        get: (endpoint) => Promise.resolve(stored.get(id(endpoint))),
        put: (endpoint, key) => Promise.resolve(void stored.set(id(endpoint), key)),
      },
      onWarning: (message) => warnings.push(message),
    });
    expect((await run(machine, 'echo met', { via })).stdout).toBe('met\n');
    expect([...stored]).toEqual([[`${two.address}:22`, hostKey]]);
    expect(warnings).toEqual([expect.stringContaining(hostKey)]);
    await two.changeHostKey();
    expect(await failure(run(machine, 'true', { via }))).toMatchObject({ reason: 'HostKeyMismatch' });
  });
});

describeOnHosts('scripts through a bastion', () => {
  let host: TestHost;
  let bastion: TestHost;
  beforeAll(async () => {
    hosts = await startHosts({ names: ['inner'], bastion: true });
    host = hosts.get('inner');
    bastion = hosts.bastion!;
  });
  afterAll(() => hosts.end());

  const behind = (): Machine => ({ ...host.machine(), bastion: bastion.machine('guest') });

  test('run, with a key and a host key of its own', async () => {
    expect(keyRefOf(bastion)).not.toEqual(keyRefOf(host));
    expect((await run(behind(), 'hostname; cat', { stdin: 'in' })).stdout).toBe('inner\nin');
  });

  test('a failure names the machine that it is about', async () => {
    const wrongKey = hosts.privateKey(keyRefOf(host));
    const via = transport({ privateKey: () => Promise.resolve(wrongKey) });
    expect(await failure(run(behind(), 'true', { via }))).toMatchObject({
      reason: 'AuthenticationFailed',
      message: expect.stringContaining(`the bastion guest@${bastion.address} `) as string,
    });
    await host.refuseKey();
    expect(await failure(run(behind(), 'true'))).toMatchObject({
      reason: 'AuthenticationFailed',
      message: expect.stringMatching(new RegExp(`^root@${host.address} `)) as string,
    });
    await host.acceptKey();
    const known = behind();
    await bastion.changeHostKey();
    expect(await failure(run(known, 'true'))).toMatchObject({
      reason: 'HostKeyMismatch',
      message: expect.stringContaining(`the bastion guest@${bastion.address} `) as string,
    });
    await host.stopSshd();
    expect(await failure(run(behind(), 'true'))).toMatchObject({
      reason: 'Unreachable',
      message: expect.stringMatching(new RegExp(`^root@${host.address} `)) as string,
    });
  });
});
