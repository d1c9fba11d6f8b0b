import { spawn, type ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as elapsed } from 'node:timers/promises';
import { parseScriptResult, renderSource, encodeStdin, type ScriptResult, type Task } from '../../../provision';
import { RKE_UP, rkeTasks } from '../../../provision/rke';
import { startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { waitForPid } from '../../support/processes';
import { installFakeRke, type FakeRkeBinary } from '../../support/rke/rke';
import { temporaryFolder } from '../../support/temporary-folder';
import { node, rkeInput } from '../../provision/rke/fixtures';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

jest.setTimeout(180_000);

/** Runs of RKE from two computers, each with a memory of its own, for a cluster on a real SSH server. */
describeOnHosts('the lock of a cluster of RKE', () => {
  const name = `lock-${String(process.pid)}`;
  const rkeFolder = join(temporaryFolder('kindred-rke-lock-'), 'rke');
  let hosts: Hosts;
  let host: TestHost;
  let rke: FakeRkeBinary;
  let task: Task;
  const running: ChildProcess[] = [];
  let computers = 0;

  beforeAll(async () => {
    hosts = await startHosts({ names: ['n1'] });
    host = hosts.get('n1');
    rke = installFakeRke(rkeFolder);
    const { address, port, hostKey } = host;
    const input = rkeInput({ name, nodes: [node({ address, port, hostKey, user: 'admin' })] });
    task = rkeTasks(input).find(({ id }) => id === RKE_UP)!;
  });
  afterEach(() => running.splice(0).forEach(kill));
  afterAll(() => hosts.end());

  /** Ends a computer's run with all that belongs to it, as the end of a pod does. */
  function kill({ pid }: ChildProcess): void {
    try {
      process.kill(-pid!, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it has ended
    }
  }

  /** Starts `rke up` as another computer would: none of these is the one that a lock was left behind by. */
  function start(): { readonly child: ChildProcess; readonly answer: Promise<ScriptResult> } {
    const script = 'mount -t tmpfs none /dev/shm && exec sh -c "$1"';
    const env = { PATH: `${rke.bin}:${process.env['PATH'] ?? ''}` };
    const apply = task.apply.replace('here="', `here="computer-${String((computers += 1))}-`);
    const child = spawn('unshare', ['-m', 'sh', '-c', script, 'sh', apply], { detached: true, env });
    running.push(child);
    const lookup = (leaf: object): string => ('secret' in leaf ? host.privateKey : '');
    child.stdin.end(
      encodeStdin((task.stdin ?? []).map((value) => ({ name: value.name, value: renderSource(value.from, lookup) }))),
    );
    let stdout = '';
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
    const answer = new Promise<string>((resolve) => child.on('close', () => resolve(stdout))).then(parseScriptResult);
    answer.catch(() => undefined); // one that is killed has none
    return { child, answer };
  }

  /** A run that stands still in the middle. */
  async function atWork(): Promise<ChildProcess> {
    rmSync(join(rkeFolder, 'pid'), { force: true });
    rke.control({ fail: 'hang' });
    const { child } = start();
    await waitForPid(join(rkeFolder, 'pid'));
    return child;
  }
  const ups = (): number => rke.calls().filter(({ argv }) => argv[0] === 'up').length;
  const lockFile = `/home/admin/.kindred/rke/${name}.lock`;

  test('is held by the first, who is named; killed with all that belongs to it, it frees the cluster', async () => {
    const first = await atWork();
    const before = ups();
    const refusal = await start().answer;
    expect(refusal).toMatchObject({ ok: false, changed: false, reason: 'Locked' });
    expect(refusal.message).toContain(`${lockFile.replace('/home/admin', '~')} on ${host.address}`);
    expect(refusal.message).toMatch(/process \d+, since 20\d\d-/);
    expect(ups()).toBe(before);
    kill(first);
    expect(await start().answer).toMatchObject({ ok: true });
    await expect(host.exec(`cat ${lockFile}`)).rejects.toThrow(/No such file/);
  });

  test('outlives its connection: the first takes it back where that is cut', async () => {
    await atWork();
    const token = (): Promise<string> => host.exec(`cut -d ' ' -f 1 ${lockFile}`);
    const before = await token();
    await host.dropConnections();
    // Longer than a lock is kept whose holder has closed its connection.
    await elapsed(25_000);
    expect(await token()).not.toBe(before);
    expect(await start().answer).toMatchObject({ ok: false, reason: 'Locked' });
  });

  test('stays where nothing was heard of its holder when it ended, until a person takes it away', async () => {
    await host.exec(`rm -f ${lockFile}`);
    const first = await atWork();
    await host.cutNetwork();
    // Longer than the last word of a holder counts; then sshd gives up, as it does where it asks for a sign of life (ClientAliveInterval).
    await elapsed(20_000);
    await host.dropConnections();
    kill(first);
    await host.restoreNetwork();
    expect(await start().answer).toMatchObject({ ok: false, reason: 'Locked' });
    await host.exec(`rm ${lockFile}`);
    expect(await start().answer).toMatchObject({ ok: true });
  });
});
