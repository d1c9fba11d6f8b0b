import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StdinValue, Task } from '../../../provision/task/task';
import { executePlan, type ExecutePlanOptions, type TaskEvent } from '../../../provisioner/tasks/execute-plan';
import { LocalTransport } from '../../../provisioner/tasks/local-transport';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder('kindred-carry-out-');
let world: string;
let number = 0;

/** A task whose scripts write down that they ran, and answer. */
function task(id: string, more: Partial<Task> & { readonly does?: string; readonly removes?: string } = {}): Task {
  const { does = '', removes, ...rest } = more;
  const script = (what: string, body: string): string => `cd '${world}'
echo '${what} ${id}' >>log
touch 'running-${id}'
${body}
rm -f 'running-${id}'
echo '{"ok":true,"changed":true}'`;
  return {
    id,
    description: `does ${id}`,
    after: [],
    apply: script('apply', does),
    remove: script('remove', removes ?? ''),
    timeoutSeconds: 10,
    ...rest,
  };
}

const fails = (answer: object): string => `echo '${JSON.stringify({ ok: false, changed: true, ...answer })}'; exit 1`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const log = (): readonly string[] =>
  existsSync(join(world, 'log')) ? readFileSync(join(world, 'log'), 'utf8').trim().split('\n') : [];

let saved: TaskRecord[] = [];
let events: TaskEvent[] = [];

function act(plan: readonly Task[], more: Partial<ExecutePlanOptions> = {}): ReturnType<typeof executePlan> {
  return executePlan({
    plan,
    previous: saved,
    transport: new LocalTransport(),
    lookup: {
      secret: ({ name }) => Promise.resolve(`secret of ${name}`),
      file: () => Promise.reject(new Error('no such file')),
    },
    save: (records) => {
      saved = JSON.parse(JSON.stringify(records)) as TaskRecord[];
      return Promise.resolve();
    },
    onEvent: (event) => events.push(event),
    ...more,
  });
}

beforeEach(() => {
  world = join(folder, String(++number));
  mkdirSync(world);
  saved = [];
  events = [];
});

describe('carryOut', () => {
  test('applies in order; nothing changed = nothing run', async () => {
    const plan = [task('a'), task('b', { after: ['a'] }), task('c', { after: ['b'] })];
    expect(await act(plan)).toMatchObject({
      complete: true,
      ran: ['a', 'b', 'c'],
      changed: ['a', 'b', 'c'],
      errors: [],
    });
    expect(await act(plan)).toMatchObject({ complete: true, ran: [], changed: [] });
    expect(log()).toEqual(['apply a', 'apply b', 'apply c']);
    expect(events.map(({ phase }) => phase)).toEqual([
      'started',
      'succeeded',
      'started',
      'succeeded',
      'started',
      'succeeded',
    ]);
  });

  test('runs again what changed, and what reads a changed output', async () => {
    const reads: StdinValue[] = [{ name: 'given', from: { output: { task: 'a', name: 'x' } } }];
    const gives = (value: string): string =>
      `echo '{"ok":true,"changed":false,"outputs":{"x":"${base64(value)}"}}'; exit 0`;
    const keeps = 'while read -r name value; do printf "%s=" "$name"; printf %s "$value" | base64 -d; done >read';
    const plan = (value: string): Task[] => [
      task('a', { does: gives(value), outputs: ['x'] }),
      task('b', { after: ['a'], does: keeps, stdin: reads }),
      task('c', { after: ['b'] }),
    ];
    await act(plan('one'));
    expect(readFileSync(join(world, 'read'), 'utf8')).toBe('given=one');
    expect((await act(plan('two'))).ran).toEqual(['a', 'b']);
    expect(readFileSync(join(world, 'read'), 'utf8')).toBe('given=two');
  });

  test('a volatile value is no reason to run again, another is', async () => {
    const secret = (name: string, volatile: boolean): StdinValue => ({
      name: 'key',
      from: { secret: { namespace: 'n', name, key: 'k' } },
      volatile,
    });
    await act([task('a', { stdin: [secret('one', true)] })]);
    expect((await act([task('a', { stdin: [secret('two', true)] })])).ran).toEqual([]);
    expect((await act([task('a', { stdin: [secret('two', false)] })])).ran).toEqual(['a']);
    expect((await act([task('a', { stdin: [secret('three', false)] })])).ran).toEqual(['a']);
  });

  test('removes what is gone, each before what it came after', async () => {
    const a = task('a');
    await act([a, task('b', { after: ['a'] }), task('c', { after: ['a'] }), task('d', { after: ['b', 'c'] })]);
    const done = await act([a], { concurrency: 1 });
    expect(done.complete).toBe(true);
    expect(log().slice(4)).toEqual(['remove d', 'remove c', 'remove b']);
    expect(saved.map((record) => record.task.id)).toEqual(['a']);
    await act([]);
    expect(saved).toEqual([]);
  });

  test('removes by the script that stood in the plan last, though the task itself did not change', async () => {
    await act([task('a')]);
    await act([task('a', { removes: 'echo newer >>log' })]);
    await act([]);
    expect(log()).toEqual(['apply a', 'remove a', 'newer']);
  });

  test('after a failure nothing starts, nothing is removed, and what came before is kept', async () => {
    await act([task('old')]);
    const failing = task('b', {
      after: ['a'],
      outputs: ['half'],
      does: fails({ reason: 'DiskFull', message: 'no room', outputs: { half: 'eA==' } }),
    });
    const done = await act([task('a'), failing, task('c', { after: ['b'] })]);
    expect(done).toMatchObject({ complete: false, ran: ['a', 'b'] });
    expect(done.errors.map(({ reason, message }) => ({ reason, message }))).toEqual([
      { reason: 'DiskFull', message: 'b: no room' },
    ]);
    expect(log()).toEqual(['apply old', 'apply a', 'apply b']);
    expect(saved.map(({ task: { id }, inputHash, outputs }) => [id, inputHash !== undefined, outputs])).toEqual([
      ['old', false, {}],
      ['a', true, {}],
      ['b', false, { half: 'eA==' }],
    ]);
    const whole = [task('a'), task('b', { after: ['a'] }), task('c', { after: ['b'] })];
    expect((await act(whole)).ran).toEqual(['b', 'c', 'old']);
  });

  test('a task is on record before it starts: one that was killed in the middle is removed when the plan drops it', async () => {
    const killed = task('a', { does: 'kill -KILL $$' });
    const done = await act([killed]);
    expect(done.errors[0]?.reason).toBe('ConnectionLost');
    expect((await act([])).ran).toEqual(['a']);
    expect(log()).toEqual(['apply a', 'remove a']);
  });

  test('what cannot be saved does not start', async () => {
    const save = (): Promise<void> => Promise.reject(new Error('the Secret is gone'));
    await expect(act([task('a')], { save })).rejects.toThrow('the Secret is gone');
    expect(log()).toEqual([]);
  });

  test.each([
    ['a save that failed', false],
    ['a save after which nothing more may start', true],
  ])('what a script gives is saved, also after %s', async (_, isStopped) => {
    const gives = `until test -e go; do sleep 0.02; done; echo '{"ok":true,"changed":true,"outputs":{"x":"eA=="}}'; exit 0`;
    const plan = [task('a'), task('b', { does: gives, outputs: ['x'] }), task('c', { after: ['a'] })];
    let refused = 0;
    const save = (records: readonly TaskRecord[]): Promise<void> => {
      const isEndOfA = records.some(({ task: { id }, inputHash }) => id === 'a' && inputHash !== undefined);
      const isRefused = isEndOfA && (isStopped || refused === 0);
      if (!isRefused || isStopped) saved = JSON.parse(JSON.stringify(records)) as TaskRecord[];
      if (!isRefused) return Promise.resolve();
      refused += 1;
      writeFileSync(join(world, 'go'), '');
      return Promise.reject(new Error('not now'));
    };
    await expect(act(plan, { save })).rejects.toThrow('not now');
    expect(saved.map(({ task: { id }, inputHash, outputs }) => [id, inputHash !== undefined, outputs])).toEqual([
      ['a', true, {}],
      ['b', true, { x: 'eA==' }],
    ]);
    expect([...log()].sort()).toEqual(['apply a', 'apply b']);
    expect((await act(plan)).ran).toEqual(['c']);
  });

  test('who waits for a save that comes after one that failed starts nothing', async () => {
    const held: { readonly fail: () => void; readonly succeed: () => void }[] = [];
    const save = (): Promise<void> =>
      new Promise((resolve, reject) => {
        held.push({ succeed: resolve, fail: () => reject(new Error('not now')) });
      });
    const carriedOut = act([task('a'), task('b')], { save });
    const next = async (): Promise<(typeof held)[number]> => {
      while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
      return held.shift()!;
    };
    (await next()).fail();
    (await next()).succeed();
    await expect(carriedOut).rejects.toThrow('not now');
    expect(log()).toEqual([]);
  });

  test('at most so many at once; each only after those before it', async () => {
    // None ends before three are at it, or there were more than may be.
    const waits = `ls | grep -c running- >>counts
until test -e three; do if test "$(ls | grep -c running-)" -ge 3; then touch three; else sleep 0.02; fi; done
ls | grep -c running- >>counts`;
    const many = Array.from({ length: 6 }, (_, i) => task(`t${i}`, { does: waits }));
    const last = task('last', { after: many.map(({ id }) => id), does: 'ls | grep -c running- >>counts' });
    await act([...many, last], { concurrency: 3 });
    const counts = readFileSync(join(world, 'counts'), 'utf8').trim().split('\n').map(Number);
    expect(Math.max(...counts)).toBe(3);
    expect(counts.at(-1)).toBe(1);
  });

  test('told to stop, the step under way ends and no other starts', async () => {
    const abort = new AbortController();
    const plan = [task('a', { does: 'sleep 0.3; echo through >>log' }), task('b', { after: ['a'] })];
    const onEvent = (): void => abort.abort();
    expect(await act(plan, { signal: abort.signal, onEvent })).toMatchObject({
      complete: false,
      ran: ['a'],
      errors: [],
    });
    expect(log()).toEqual(['apply a', 'through']);
  });

  test.each([
    ['no answer', 'exit 0', 'NoAnswer', 60],
    ['an answer that lacks an output', `echo '{"ok":true,"changed":true}'; exit 0`, 'NoAnswer', 60],
    ['no end', 'sleep 60', 'TimedOut', 1],
  ])('%s is a failure', async (_, does, reason, timeoutSeconds) => {
    const done = await act([task('a', { does, outputs: ['x'], timeoutSeconds })]);
    expect(done.errors.map((error) => error.reason)).toEqual([reason]);
  });

  test('what a script prints stands in no error', async () => {
    const done = await act([task('a', { does: 'echo canary-in-output; echo canary-in-errors >&2; exit 1' })]);
    expect(done.errors).toHaveLength(1);
    expect(`${String(done.errors[0])} ${JSON.stringify(events)}`).not.toContain('canary');
  });

  test("a value that cannot be had is the task's failure, before anything runs", async () => {
    const done = await act([task('a', { stdin: [{ name: 'x', from: { file: 'missing' } }] })]);
    expect(done.errors).toEqual([
      expect.objectContaining({ task: 'a', reason: 'ValueMissing', message: 'a: no such file' }),
    ]);
    expect(log()).toEqual([]);
  });

  test('a plan that is out of order is refused', async () => {
    await expect(act([task('b', { after: ['a'] }), task('a')])).rejects.toThrow(
      'task b comes after a, which does not stand before it',
    );
    await expect(act([task('a'), task('a')])).rejects.toThrow('two tasks have the id a');
  });
});
