import { base64 } from './stdin';

/** Who logs in. */
export interface LoginOptions {
  /** The user of the machine. */
  readonly user: string;
  /** Run as that user, not as root. @default false */
  readonly asUser?: boolean;
}

/** The longest single argument that Linux hands to a program, in bytes: MAX_ARG_STRLEN, less some room. Source: execve(2). */
const MAX_LENGTH = 128 * 1024 - 1024;

/**
 * The one string that sshd gives to the user's login shell: it runs a script with `sh` as root, by `sudo -n` unless the user is root
 * already. Its stdin is the script's.
 *
 * The string is `sh -c '...'` with nothing but base64 of ours between the quotes, no quote, backslash or `!` in them: sh, bash, dash, zsh, ksh,
 * fish and csh all read it alike. It holds no secret, because scripts hold none.
 *
 * @throws RangeError when the script is longer than Linux takes
 */
export function commandLine(script: string, { user, asUser = false }: LoginOptions): string {
  const started = asUser || user === 'root' ? script : asRoot(script, user);
  const line = `sh -c 'eval "$(printf %s ${base64(started)} | base64 -d)"'`;
  if (line.length > MAX_LENGTH) {
    throw new RangeError(`the script has ${script.length} characters, too many for one command line; split the task`);
  }
  return line;
}

/** `sh` of a script in single quotes, as POSIX has them. */
function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A script that runs another as root, or answers that it must not. */
function asRoot(script: string, user: string): string {
  const name = user.replace(/[^A-Za-z0-9_.-]/g, '?');
  const refusal = {
    ok: false,
    changed: false,
    reason: 'PreflightFailed',
    message:
      `user ${name} may not become root: "sudo -n true" fails. Allow it without a password (${name} ALL=(ALL) NOPASSWD: ALL ` +
      'in a file of /etc/sudoers.d), or log in as root',
  };
  return [
    `script=${singleQuoted(script)}`,
    'if [ "$(id -u)" -eq 0 ]; then exec sh -c "$script"; fi',
    'if sudo -n true </dev/null >/dev/null 2>&1; then exec sudo -n sh -c "$script"; fi',
    `printf '%s\\n' ${singleQuoted(JSON.stringify(refusal))}`,
    'exit 1',
    '',
  ].join('\n');
}
