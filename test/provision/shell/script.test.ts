import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { decodeOutput } from '../../../provision/task/script-io';
import { buildScript } from '../../../provision/shell/script';
import { FAIL_FUNCTION } from '../../../provision/shell/functions';
import type { StdinValue } from '../../../provision/task/task';
import { waitForPid } from '../../support/processes';
import { missingShells, runScript, shells } from '../shells';
import { fresh, holder, props, testWaits } from './script-waits';

const value = (name: string, volatile = false): StdinValue => ({ name, from: { text: '' }, volatile });

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;
if (!mayMount) console.warn('full disks not tested: that takes root on Linux, to mount a small one');
const onDisks = mayMount ? test : test.skip;

test('there is a shell to test with', () => {
  expect(shells.length).toBeGreaterThan(0);
});

describe.each(shells)('%s', (name, shell) => {
  test('answers, with outputs, and with nothing else on stdout or stderr', () => {
    const { answer, stdout, stderr, code } = runScript(
      shell,
      buildScript(props(fresh()), [
        'echo noise',
        'echo noise >&2',
        'run echo noise',
        'note "a \\"quoted\\" \\\\ warning"',
        'note "second\tline é $(printf \'\\001\\033\')"',
        'give token "a b\nc"',
        'give other ""',
        'changed=true',
        'finish',
      ]),
    );
    expect(answer).toEqual({
      ok: true,
      changed: true,
      message: 'a "quoted" \\ warning\nsecond line ?? ',
      outputs: { token: Buffer.from('a b\nc').toString('base64'), other: '' },
    });
    expect([stderr, code, stdout.split('\n').length]).toEqual(['', 0, 2]);
  });

  test('reads stdin, whatever stands there', () => {
    const odd = 'a\'b"c\\d$(id) `id`\n\n  é😀\t\n\n';
    const values = [
      { name: 'unknown', value: 'x' },
      { name: 'token', value: odd },
      { name: 'empty', value: '' },
    ];
    const text = buildScript(props(fresh(), { stdin: [value('token'), value('empty')] }), [
      'give back "$token"',
      'give none "$empty"',
      'finish',
    ]);
    const { answer } = runScript(shell, text, values);
    expect(decodeOutput(answer, 'back')).toBe(odd);
    expect(decodeOutput(answer, 'none')).toBe('');
  });

  test('hides what it was given in messages', () => {
    const values = [
      { name: 'token', value: 'canary-token' },
      { name: 'config', value: 'first: "canary-quoted"\ncanary-line\n' },
      { name: 'longer', value: 'canary-token-longer' },
    ];
    const text = buildScript(props(fresh(), { stdin: values.map(({ name }) => value(name)) }), [
      'printf "%s\\n" "got $token, canary-quoted" >>"$log"',
      'give made canary-made',
      'die Failed "saw $token and $longer, [canary-line] and canary-made: $(last_lines "$log")"',
    ]);
    const { answer, code } = runScript(shell, text, values);
    expect(code).toBe(1);
    expect(answer.message).toBe('saw *** and ***, [***] and ***: got ***, ***');
    expect(answer.reason).toBe('Failed');
    expect(decodeOutput(answer, 'made')).toBe('canary-made');
  });

  test('hides what it was given where a long line is cut off in the middle of it', () => {
    const secret = `canary-${'x'.repeat(60)}`;
    const text = buildScript(props(fresh(), { stdin: [value('token')] }), [
      `printf '%290s%s tail\\n' '' "$token" >>"$log"`,
      'die Failed "$(last_lines "$log")"',
    ]);
    const { answer } = runScript(shell, text, [{ name: 'token', value: secret }]);
    expect(answer.message).not.toContain('canary');
    expect(answer.message).toMatch(/^ {290}\*{3} tail$/);
  });

  test('an unexpected end is answered, with what was going on', () => {
    const text = buildScript(props(fresh()), ['changed=true', 'run sh -c "echo last words; exit 3"', 'finish']);
    const { answer, code } = runScript(shell, text);
    expect({ ...answer, code }).toEqual({
      ok: false,
      changed: true,
      reason: 'Failed',
      message: 'trying: a command ended with exit code 3. Its last words:\nlast words',
      code: 1,
    });
  });

  test('an unset variable, and an end without an answer, are answered too', () => {
    for (const body of ['echo "$nothing"', 'exit 0']) {
      const { answer, code } = runScript(shell, buildScript(props(fresh()), [body]));
      expect([answer.ok, answer.reason, code]).toEqual([false, 'Failed', 1]);
    }
  });

  test('a full disk is called so', () => {
    for (const body of ['run sh -c "echo no space left on device; exit 1"', 'broken Other "it failed"']) {
      const text = buildScript(props(fresh(), { doing: 'writing' }), [
        FAIL_FUNCTION,
        'echo "write /data: No space left on device" >>"$log"',
        body,
      ]);
      expect(runScript(shell, text).answer).toMatchObject({ ok: false, reason: 'DiskFull' });
    }
  });

  onDisks('a disk that is really full, before and in the middle', () => {
    const state = fresh();
    const body = ['changed=true', 'dd if=/dev/zero bs=1k count=300 2>/dev/null | put "$state/file" 600', 'finish'];
    for (const [fill, changed] of [
      [':', true],
      [`dd if=/dev/zero of=${state}/fill bs=1k 2>/dev/null || :`, false],
    ] as const) {
      const text = buildScript(props(state, { lockSeconds: 1, generation: 'g' }), body);
      const own = 'mount -t tmpfs -o size=128k tmpfs "$1"; eval "$2"; shift 2; exec "$@"';
      const { answer } = runScript(['unshare', '-m', 'sh', '-c', own, 'sh', state, fill, ...shell], text);
      expect(answer).toMatchObject({ ok: false, changed, reason: 'DiskFull' });
    }
  });

  test('files are there whole, and for root alone', () => {
    const state = fresh();
    const text = buildScript(props(state), [
      `printf '%s' "it's" | put ${state}/a/b/file 600`,
      `printf 'second\\n' | put ${state}/a/b/file 640`,
      'finish',
    ]);
    expect(runScript(shell, text).answer.ok).toBe(true);
    expect(readFileSync(`${state}/a/b/file`, 'utf8')).toBe('second\n');
    expect(statSync(`${state}/a/b/file`).mode & 0o777).toBe(0o640);
    expect(readdirSync(`${state}/a/b`)).toEqual(['file']);
    expect(statSync(`${state}/one/log/10.0.0.1_install`).mode & 0o777).toBe(0o600);
    expect(statSync(`${state}/one`).mode & 0o777).toBe(0o700);
  });

  describe('marker', () => {
    const steps = ['if marked; then finish; fi', 'changed=true', 'mark', 'finish'];
    const stdin = [value('token'), value('key', true)];
    const run = (stateFolder: string, generation: string, token: string, key: string): boolean =>
      runScript(shell, buildScript(props(stateFolder, { generation, stdin }), steps), [
        { name: 'token', value: token },
        { name: 'key', value: key },
      ]).answer.changed;

    test('the second run finds it done, until generation or a value changes', () => {
      const state = fresh();
      expect(run(state, 'g1', 'secret', 'k1')).toBe(true);
      expect(run(state, 'g1', 'secret', 'k1')).toBe(false);
      expect(run(state, 'g1', 'secret', 'volatile')).toBe(false);
      expect(run(state, 'g1', 'other', 'k1')).toBe(true);
      expect(run(state, 'g2', 'other', 'k1')).toBe(true);
      expect(run(state, 'g2', 'other', 'k1')).toBe(false);
      expect(readFileSync(`${state}/one/marker/10.0.0.1_install`, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    });

    test('what was not finished is not marked', () => {
      const state = fresh();
      const broken = buildScript(props(state, { generation: 'g' }), ['marked || :', 'run false', 'mark', 'finish']);
      expect(runScript(shell, broken).answer.ok).toBe(false);
      expect(runScript(shell, buildScript(props(state, { generation: 'g' }), steps)).answer.changed).toBe(true);
    });
  });

  describe('lock', () => {
    test('other locks of the cluster are free meanwhile', async () => {
      const state = fresh();
      const child = await holder(shell, state);
      const other = buildScript(props(state, { lockSeconds: 0, lock: 'lock-10.0.0.2' }), ['finish']);
      expect(runScript(shell, other).answer.ok).toBe(true);
      process.kill(-child.pid!, 'SIGKILL');
    });

    test('a service that is left behind holds neither lock nor connection', async () => {
      const state = fresh();
      const begins = buildScript(props(state, { lockSeconds: 0 }), [
        `detached sh -c 'sleep 50 & echo $! >"$0"' "$state/pid"`,
        'finish',
      ]);
      expect(runScript(shell, begins).answer.ok).toBe(true);
      expect(runScript(shell, buildScript(props(state, { lockSeconds: 0 }), ['finish'])).answer.ok).toBe(true);
      // Neither has waited for its end: there it still is.
      expect(process.kill(await waitForPid(`${state}/one/pid`), 'SIGKILL')).toBe(true);
    });
  });

  if (name === shells[0]?.[0]) testWaits(shell);
});

test('the log is begun anew by each run', () => {
  const state = fresh();
  const [, shell] = shells[0]!;
  const text = buildScript(props(state), ['echo once', 'finish']);
  mkdirSync(`${state}/one/log`, { recursive: true });
  writeFileSync(`${state}/one/log/10.0.0.1_install`, 'x'.repeat(1000));
  runScript(shell, text);
  runScript(shell, text);
  expect(readFileSync(`${state}/one/log/10.0.0.1_install`, 'utf8')).toBe('once\n');
});
