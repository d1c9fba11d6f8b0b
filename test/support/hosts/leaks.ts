import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestHost } from './index';

/** Every command line and environment that was seen, of this machine and of all hosts on it. */
export interface ProcessRecording {
  /** Ends it. @returns what was seen, one process after the other */
  stop(): Promise<string>;
}

/** Records what anyone could see in `/proc` from now on: a look at all processes every few milliseconds. */
export async function recordProcesses(): Promise<ProcessRecording> {
  const child = spawn(process.execPath, [join(__dirname, 'process-recorder-child.cjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {},
  });
  let seen = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk));
  await once(child.stdout, 'data'); // it has looked once
  return {
    stop: async () => {
      child.stdin.end();
      await once(child, 'close');
      return seen;
    },
  };
}

/** How a secret may show: as it is, as JSON, in base64, in hexadecimal. */
export function encodingsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  // What of its base64 is the same wherever it stands in a longer text.
  const shifted = [0, 1, 2].map((by) => {
    const encoded = Buffer.concat([Buffer.alloc(by), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    return encoded.slice(by === 0 ? 0 : by + 1, -2);
  });
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1), ...shifted, bytes.toString('hex')])];
}

/** A file on a host that has a secret in it. */
interface LeakedFile {
  readonly path: string;
  /** Octal. */
  readonly mode: string;
}

/** The files of a host, written since it was started, that hold one of the texts. */
export async function findFilesContaining(host: TestHost, texts: readonly string[]): Promise<readonly LeakedFile[]> {
  const script = `cat >/run/patterns; chmod 600 /run/patterns
for folder in /etc /var /usr/local /root /home /run /tmp /opt /srv; do
  find $folder -type f -newer /etc/hostname ! -path /run/patterns -exec grep -lFf /run/patterns {} + 2>/dev/null || true
done | sort -u | while read -r file; do stat -c '%a %n' "$file"; done
rm -f /run/patterns`;
  const lines = (await host.exec(script, `${texts.join('\n')}\n`)).trim().split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => ({ mode: line.slice(0, line.indexOf(' ')), path: line.slice(line.indexOf(' ') + 1) }));
}
