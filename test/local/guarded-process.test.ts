import path from 'node:path';
import {
  GuardedProcess,
  PartEndedError,
  RunningParts,
  describeExit,
  retryOnPortConflict,
  pollUntilReady,
  type PartExit,
} from '../../local/guarded-process';
import { temporaryFolder } from '../support/temporary-folder';

const folder = temporaryFolder('kindred-guard-');
let count = 0;

function options(script: string) {
  count += 1;
  const logFile = path.join(folder, `${count}.log`);
  return { part: 'etcd', program: '/bin/sh', args: ['-c', script], cwd: folder, logFile };
}

const run = (script: string): GuardedProcess => new GuardedProcess(options(script));

test('its exit code and last lines are its own', async () => {
  const process = run('echo one; echo two >&2; exit 7');
  const exit = await process.exited;
  expect(exit).toEqual({ part: 'etcd', code: 7, signal: null, lastLines: 'one\ntwo' });
  expect(describeExit(exit, 'x.log')).toBe('etcd exited with code 7. The last lines of x.log:\none\ntwo');
});

test('a signal reaches the program itself', async () => {
  const exit = await run('sleep 60').kill();
  expect(exit).toMatchObject({ code: null, signal: 'SIGKILL' });
  expect(describeExit(exit, 'x.log')).toContain('was ended by SIGKILL');
});

test('arguments and environment arrive untouched and unmixed', async () => {
  process.env['ETCD_NAME'] = 'surprise';
  const { lastLines } = await new GuardedProcess({
    ...options(''),
    args: ['-c', 'echo "$1|$ETCD_NAME"', 'sh', '$(date) "*"'],
  }).exited;
  delete process.env['ETCD_NAME'];
  expect(lastLines).toBe('$(date) "*"|');
});

test('a program that does not exist is an exit like any other', async () => {
  const { code, lastLines } = await new GuardedProcess({ ...options(''), program: '/no/such/program' }).exited;
  expect(code).toBeGreaterThan(0);
  expect(lastLines).toContain('/no/such/program');
});

describe('running parts', () => {
  test('tell of an end that nobody asked for, and of no other', async () => {
    const parts = new RunningParts();
    const told: PartExit[] = [];
    parts.onExit((exit) => told.push(exit));
    const forget = parts.onExit(() => {
      throw new Error('taken back');
    });
    forget();
    const asked = parts.start(options('sleep 60'));
    const unasked = parts.start(options('exit 3'));
    await parts.kill(asked);
    await unasked.exited;
    expect(told).toMatchObject([{ code: 3 }]);
    parts.start(options('sleep 60'));
    await parts.killAll();
    expect(told).toHaveLength(1);
    expect(() => parts.start(options('true'))).toThrow('cannot start etcd: the control plane has been stopped');
  });
});

describe('waiting until ready', () => {
  const wait = { what: 'it', processes: [] as GuardedProcess[], timeoutMs: 100 };

  test('goes on through errors', async () => {
    let looks = 0;
    await pollUntilReady(
      () => {
        looks += 1;
        return looks < 3 ? Promise.reject(new Error('refused')) : Promise.resolve(true);
      },
      { ...wait, timeoutMs: 10_000 },
    );
    expect(looks).toBe(3);
  });

  test('ends at once when the process has ended', async () => {
    const processes = [run('echo broken flag; exit 1')];
    const failing = pollUntilReady(() => Promise.resolve('not yet'), { ...wait, processes, timeoutMs: 10_000 });
    await expect(failing).rejects.toThrow(/etcd exited with code 1[^]*broken flag/);
  });

  test('ends at the deadline with what was missing', async () => {
    await expect(pollUntilReady(() => Promise.resolve('no node'), wait)).rejects.toThrow(
      'waited 0.1 s for it; last seen: no node.',
    );
  });

  test('ends when it is called off', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(pollUntilReady(() => Promise.resolve('no'), { ...wait, signal })).rejects.toThrow('enough');
  });
});

describe('a port lost to another program', () => {
  const lost = new PartEndedError('etcd exited with code 1: bind: address already in use');

  test('is tried again with another', async () => {
    const start = jest.fn<Promise<string>, []>().mockRejectedValueOnce(lost).mockResolvedValueOnce('up');
    await expect(retryOnPortConflict(start)).resolves.toBe('up');
  });

  test('three times', async () => {
    const start = jest.fn<Promise<string>, []>().mockRejectedValue(lost);
    await expect(retryOnPortConflict(start)).rejects.toBe(lost);
    expect(start).toHaveBeenCalledTimes(3);
  });

  test('and no other failure is', async () => {
    const start = jest.fn<Promise<string>, []>().mockRejectedValue(new PartEndedError('unknown flag'));
    await expect(retryOnPortConflict(start)).rejects.toThrow('unknown flag');
    expect(start).toHaveBeenCalledTimes(1);
  });
});
