import { spawnSync } from 'node:child_process';
import { launcher, launcherStdin } from '../../../stacks/remote-cluster/commands';

/** Runs a script as a Command does: the line through a login shell, the rest over stdin. */
function run(script: string, values: readonly { name: string; value: string }[] = []) {
  const line = launcher('prod/10.0.0.1/server', script);
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', line], {
    input: launcherStdin(script, { user: 'root' }, values),
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  return { status, stdout, stderr };
}

const answer = (fields: object) => `printf '%s\\n' '${JSON.stringify({ changed: true, ...fields })}'`;

test('lets all of stdout through when it went well', () => {
  const script = `echo banner\n${answer({ ok: true, outputs: { token: 'cw==' } })}`;
  const stdout = 'banner\n{"changed":true,"ok":true,"outputs":{"token":"cw=="}}\n';
  expect(run(script)).toEqual({ status: 0, stdout, stderr: '' });
});

test('shows the message, and nothing of stdout, when it failed', () => {
  const message = 'line one\nsays "no": \\ C:\\path';
  const script = `echo SECRET\n${answer({ ok: false, reason: 'DiskFull', message, outputs: { token: 'c2VjcmV0' } })}\nexit 3`;
  expect(run(script)).toEqual({ status: 3, stdout: '', stderr: `${message}\n` });
});

test.each(['echo SECRET; exit 7', 'exit 7', 'echo "{}"; exit 7'])('says so when there is no answer: %s', (script) => {
  expect(run(script)).toEqual({ status: 7, stdout: '', stderr: 'the script ended with 7 and gave no answer\n' });
});

test('hands the values to the script over stdin, whatever they are', () => {
  const value = `it's "quoted" $HOME \`id\` \\n ü\n`;
  const script = `while read -r name coded; do printf '%s=' "$name"; printf %s "$coded" | base64 -d; done`;
  expect(run(script, [{ name: 'token', value }])).toMatchObject({ status: 0, stdout: `token=${value}` });
});

test('passes on a script of any size that one machine takes', () => {
  const script = `: ${'x'.repeat(60_000)}\necho done`;
  expect(run(script)).toEqual({ status: 0, stdout: 'done\n', stderr: '' });
});

test('has a short line that names the task and its script, and is safe in any login shell', () => {
  const line = launcher('prod\'s "x"; rm -rf $HOME/fd00::1/server', 'echo 1');
  expect(line).toMatch(
    /^sh -c 'IFS= read -r script; eval "\$\(printf %s "\$script" \| base64 -d\)"' [A-Za-z0-9_.:/-]+\/fd00::1\/server@[0-9a-f]{12}$/,
  );
  expect(line).not.toBe(launcher('prod\'s "x"; rm -rf $HOME/fd00::1/server', 'echo 2'));
  expect(line.length).toBeLessThan(200);
});
