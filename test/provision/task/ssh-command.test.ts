import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { sshCommand, parseScriptResult } from '../../../provision/task/script-io';
import { temporaryFolder } from '../../support/temporary-folder';

/** Login shells that people have. Those that are not installed here are named below. */
const candidates = ['sh', 'dash', 'bash', 'zsh', 'fish', 'ksh', 'tcsh'];
const installed = candidates.filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0);
const missing = candidates.filter((shell) => !installed.includes(shell));
if (missing.length > 0) console.warn(`login shells not tested, because not installed: ${missing.join(', ')}`);

const script = `set -eu
# a comment with 'quotes', "more", \\ backslashes ! and $dollars
text='it'"'"'s !! \\\\ \`id\` $HOME %s'
printf '%s|' "$text" "$(cat)" "$0"
id -un
`;
const said = "it's !! \\\\ `id` $HOME %s|from stdin\n\\!'\"$|";

/** What sshd does: the login shell is given the line as one argument. */
const login = (shell: string, line: string, path = process.env.PATH): ReturnType<typeof spawnSync> =>
  spawnSync(shell, ['-c', line], { input: 'from stdin\n\\!\'"$', encoding: 'utf8', env: { PATH: path, HOME: '/' } });

describe.each(installed)('login shell %s', (shell) => {
  test('root runs the script as it stands, with stdin', () => {
    const { stdout, status } = login(shell, sshCommand(script, { user: 'root' }));
    expect([String(stdout).startsWith(said), status]).toEqual([true, 0]);
  });

  test('the exit code is that of the script', () => {
    expect(login(shell, sshCommand('exit 7', { user: 'root' })).status).toBe(7);
  });
});

describe('another user', () => {
  /** Programs that stand in for those of a machine where one is not root. */
  function machine(programs: Readonly<Record<string, string>>): string {
    const folder = temporaryFolder('login-');
    for (const [name, text] of Object.entries({ id: 'echo 1000', ...programs })) {
      writeFileSync(`${folder}/${name}`, `#!/bin/sh\n${text}\n`);
      chmodSync(`${folder}/${name}`, 0o755);
    }
    return `${folder}${delimiter}${process.env.PATH ?? ''}`;
  }

  test('becomes root by sudo -n, with stdin', () => {
    const path = machine({ sudo: '[ "$1" = -n ] || exit 9\nshift\nexec env BY_SUDO=1 "$@"' });
    const line = sshCommand(`${script}\necho "$BY_SUDO"`, { user: 'core' });
    const { stdout, status } = login('sh', line, path);
    expect([String(stdout).startsWith(said), String(stdout).endsWith('\n1\n'), status]).toEqual([true, true, 0]);
  });

  test('who may not is told what to do', () => {
    for (const sudo of ['echo "sudo: a password is required" >&2; exit 1', 'exit 127']) {
      const { stdout, status } = login('sh', sshCommand(script, { user: 'core' }), machine({ sudo }));
      expect(parseScriptResult(String(stdout))).toEqual({
        ok: false,
        changed: false,
        reason: 'PreflightFailed',
        message: expect.stringContaining('core ALL=(ALL) NOPASSWD: ALL') as unknown,
      });
      expect(status).toBe(1);
    }
  });

  test('stays itself where that is wanted', () => {
    const line = sshCommand('id', { user: 'core', asUser: true });
    expect(login('sh', line, machine({ sudo: 'exit 1' })).stdout).toBe('1000\n');
  });
});

test('no character that a login shell could read stands between the quotes', () => {
  const line = sshCommand(script, { user: 'core' });
  expect(line).toMatch(/^sh -c 'eval "\$\(printf %s [A-Za-z0-9+/=]+ \| base64 -d\)"'$/);
});

test('what is too long for Linux is refused', () => {
  expect(() => sshCommand('x'.repeat(100_000), { user: 'root' })).toThrow(/the script has 100000 characters/);
});
